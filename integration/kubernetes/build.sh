#!/bin/bash
# build.sh DIRECTORY: a Kubernetes, its name server and Helm, of Go modules. What is there already is not built again.
# `go install` refuses Kubernetes' own module, which replaces parts of itself by folders: a module of our own requires it, and takes
# those parts as they are published.
set -euo pipefail
KUBERNETES=1.36.3
COREDNS=1.12.4
HELM=4.3.1
mkdir -p "$1/kubernetes"
directory=$(cd "$1" && pwd)
command -v go >/dev/null || { echo "Kubernetes is built with Go: install it" >&2; exit 2; }
[ -x /usr/lib/cni/bridge ] && [ -x /usr/bin/etcd ] ||
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends etcd-server containernetworking-plugins >"$directory/apt.log" 2>&1 ||
  { tail -20 "$directory/apt.log" >&2; exit 1; }
export CGO_ENABLED=0 GOFLAGS=-mod=mod GOBIN=$directory

has() { [ -f "$directory/$1" ] && [ "$directory/$1" -nt "${BASH_SOURCE[0]}" ]; }
built() { echo "  $1: $(($(date +%s) - began)) s"; }

cd "$directory/kubernetes"
of_module=$(go mod download -json "k8s.io/kubernetes@v$KUBERNETES" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
if [ ! -f go.sum ]; then
  {
    echo "module local/kubernetes"
    grep -E '^(go|godebug) ' "$of_module"
    echo "require k8s.io/kubernetes v$KUBERNETES"
    sed -n 's#^[[:space:]]*\(replace \)\?\(k8s.io/[a-z0-9-]*\) => ./staging.*#replace \2 => \2 v0.'"${KUBERNETES#*.}#p" "$of_module"
  } >go.mod
  echo "package local" >local.go
fi
version="-X k8s.io/component-base/version.gitVersion=v$KUBERNETES -X k8s.io/component-base/version.gitMajor=${KUBERNETES%%.*}"
version+=" -X k8s.io/component-base/version.gitMinor=$(cut -d. -f2 <<<"$KUBERNETES")"
for command in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl; do
  has $command && continue
  began=$(date +%s)
  go build -trimpath -ldflags "-s -w $version" -o "$directory/$command" "k8s.io/kubernetes/cmd/$command"
  built $command
done
for module in "coredns github.com/coredns/coredns@v$COREDNS" "helm helm.sh/helm/v4/cmd/helm@v$HELM"; do
  read -r command path <<<"$module"
  has "$command" && continue
  began=$(date +%s)
  go install -trimpath -ldflags "-s -w" "$path"
  built "$command"
done
