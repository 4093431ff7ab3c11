#!/bin/sh
# engine.sh install|start|stop: a Docker engine for the tests, of Debian's packages and without a service manager, as root.
# Several may use it at a time: the last one to stop it ends it. One that was there before all of them stays.
# Containers do not get out: what they send to any interface that is not theirs is dropped. Builds use the host's network.
set -eu
state=${ENGINE_STATE:-/var/tmp/kafka-sidecar-docker}
users=$state/users # a file for each process that has started the engine and not stopped it
mkdir -p "$users"

one_at_a_time() {
  exec 8>"$state/lock"
  flock 8
}

start_engine() {
  # A kernel may have no nf_tables: the iptables that answers is taken.
  if ! iptables -t nat -L -n >/dev/null 2>&1; then
    for kind in legacy nft; do
      iptables-$kind -t nat -L -n >/dev/null 2>&1 && update-alternatives --set iptables /usr/sbin/iptables-$kind >/dev/null && break
    done
  fi
  setsid nohup dockerd --data-root "$state/data" --exec-root "$state/exec" --pidfile "$state/docker.pid" --ip-masq=false --ipv6=false \
    --log-level warn >"$state/dockerd.log" 2>&1 </dev/null 8>&- &
  engine=$!
  for _ in $(seq 300); do
    docker info >/dev/null 2>&1 && break
    kill -0 $engine 2>/dev/null || { tail -20 "$state/dockerd.log" >&2; exit 1; }
    sleep 0.1
  done
  docker info >/dev/null
}

is_ours() {
  engine=$(cat "$state/docker.pid" 2>/dev/null) && [ "$(cat "/proc/$engine/comm" 2>/dev/null)" = dockerd ]
}

# Until it is gone: one that ends still answers whoever comes to start it.
end_engine() {
  kill "$engine"
  for _ in $(seq 300); do
    is_ours || return 0
    sleep 0.1
  done
  echo "the Docker engine ($engine) does not end: end it by hand before the next run" >&2
}

keep_containers_in() {
  for interface in $(ip -o link | awk -F': ' '$2 !~ /^(lo|docker|br-|veth)/ {sub(/@.*/, "", $2); print $2}'); do
    iptables -C DOCKER-USER -o "$interface" -j DROP 2>/dev/null || iptables -I DOCKER-USER -o "$interface" -j DROP
  done
}

case ${1:-} in
install)
  command -v dockerd >/dev/null && command -v debootstrap >/dev/null && exit 0
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io iptables debootstrap >"$state/apt.log" 2>&1 ||
    { tail -20 "$state/apt.log" >&2; exit 1; }
  ;;
start)
  one_at_a_time
  docker info >/dev/null 2>&1 || start_engine
  if is_ours; then
    keep_containers_in
    touch "$users/$PPID"
  fi
  ;;
stop)
  one_at_a_time
  rm -f "$users/$PPID"
  for user in "$users"/*; do
    [ ! -e "$user" ] || kill -0 "$(basename "$user")" 2>/dev/null || rm -f "$user"
  done
  [ -n "$(ls "$users")" ] || ! is_ours || end_engine
  ;;
*)
  sed -n 2,4p "$0" >&2
  exit 2
  ;;
esac
