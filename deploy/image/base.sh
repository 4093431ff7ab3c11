#!/bin/sh
# A base image of Debian packages: Python and what it needs. For where no image can be pulled; needs debootstrap, as root.
#   base.sh NAME [FURTHER PACKAGES]
set -eu
name=$1; shift
command -v debootstrap >/dev/null || { echo "a base of Debian packages needs debootstrap: apt-get install debootstrap, or name a BASE" >&2; exit 2; }
# From where this machine gets its packages.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
  awk '/^URIs:/ {print $2; exit} /^deb / {for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) {print $i; exit}}')
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
packages=$(echo ca-certificates python3 python3-venv "$@" | tr ' ' ',')
echo "making $name of Debian packages ..."
debootstrap --variant=minbase --include="$packages" bookworm "$root" "$mirror" >"$root.log" 2>&1 || { tail -5 "$root.log" >&2; exit 1; }
rm -f "$root.log"
# As slim images do it: no documentation, no lists of packages.
printf 'path-exclude /usr/share/doc/*\npath-exclude /usr/share/man/*\npath-exclude /usr/share/locale/*\n' >"$root/etc/dpkg/dpkg.cfg.d/slim"
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/cache/apt/*.bin "$root"/var/lib/apt/lists/* "$root"/var/log/*.log
rm -rf "$root"/usr/share/doc "$root"/usr/share/man "$root"/usr/share/locale "$root"/usr/share/info
mkdir -p "$root"/usr/share/man/man1
tar -C "$root" --numeric-owner -c . | docker import -c 'CMD ["python3"]' - "$name" >/dev/null
