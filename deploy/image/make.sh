#!/bin/sh
# Builds the image, says how large it is and how long it takes to start. `make image` calls this; variables:
#   IMAGE  the name of the image (kafka-sidecar:VERSION)
#   BASE   an image with Python 3.11 or later. Empty: one is made of Debian packages, with debootstrap, as root, without any image registry.
#   CA     a file with certificates to trust while packages are got (PIP_CERT, where that is set)
set -eu
cd "$(dirname "$0")/../.."
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' handler/kafka_sidecar/__init__.py)
IMAGE=${IMAGE:-kafka-sidecar:$version}
command -v docker >/dev/null || { echo "make image: needs a Docker engine: apt-get install docker.io, and start dockerd" >&2; exit 2; }
docker info >/dev/null 2>&1 || { echo "make image: the Docker engine does not answer: start dockerd, or see whether you may use its socket" >&2; exit 2; }
# Without the buildx plugin only the builder within the engine is there.
docker buildx version >/dev/null 2>&1 || export DOCKER_BUILDKIT=0

if [ -z "${BASE:-}" ]; then
  BASE=kafka-sidecar-base:bookworm
  docker image inspect "$BASE" >/dev/null 2>&1 || deploy/image/base.sh "$BASE"
fi
ca=${CA:-${PIP_CERT:-}}
trap 'rm -f deploy/image/ca.crt' EXIT
[ -z "$ca" ] || cp "$ca" deploy/image/ca.crt
began=$(date +%s)
echo "building $IMAGE on $BASE ..."
# --network=host: packages come from where this machine gets them.
docker build --network=host --build-arg "BASE=$BASE" -f deploy/image/Dockerfile -t "$IMAGE" -q . >/dev/null
size=$(docker image inspect -f '{{.Size}}' "$IMAGE")
base_size=$(docker image inspect -f '{{.Size}}' "$BASE")
echo "$IMAGE: $((size / 1000000)) MB, of which the base is $((base_size / 1000000)) MB; built in $(($(date +%s) - began)) s"
began=$(date +%s%3N)
docker run --rm --read-only --network none "$IMAGE" --version >/dev/null
echo "a container starts and ends in $(($(date +%s%3N) - began)) ms"
