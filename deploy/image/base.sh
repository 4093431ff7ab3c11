#!/bin/sh
# A base image of Debian packages: Python and what it needs, with Debian's updates. For where no image can be pulled; needs debootstrap, as root.
#   base.sh NAME [FURTHER PACKAGES]
set -eu
name=$1; shift
release=bookworm
command -v debootstrap >/dev/null || { echo "a base of Debian packages needs debootstrap: apt-get install debootstrap, or name a BASE" >&2; exit 2; }
# From where this machine gets its packages: the address with such a suite, in either form in which apt has them.
source_of() {
  cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
    awk -v suite="$1" '/^deb / {for (i = 3; i <= NF; i++) if ($i == suite) {print $(i - 1); exit}}'
  cat /etc/apt/sources.list.d/*.sources 2>/dev/null |
    awk -v suite="$1" '/^[ \t]*$/ {uri = ""} /^URIs:/ {uri = $2} /^Suites:/ {for (i = 2; i <= NF; i++) if ($i == suite) {print uri; exit}}'
}
mirror=$(source_of $release | head -1)
[ -n "$mirror" ] || { echo "this machine's apt has no suite $release: name a BASE, or add that suite to its sources" >&2; exit 2; }
security=$(source_of $release-security | head -1)
root=$(mktemp -d)
trap 'rm -rf "$root" "$root.log"' EXIT
packages=$(echo ca-certificates python3 python3-venv "$@" | tr ' ' ',')
echo "making $name of Debian packages ..."
quietly() { "$@" >"$root.log" 2>&1 || { tail -5 "$root.log" >&2; exit 1; }; }
quietly debootstrap --variant=minbase --include="$packages" $release "$root" "$mirror"
# As slim images do it: no documentation, no lists of packages.
printf 'path-exclude /usr/share/doc/*\npath-exclude /usr/share/man/*\npath-exclude /usr/share/locale/*\n' >"$root/etc/dpkg/dpkg.cfg.d/slim"
if [ -n "$security" ]; then
  echo "deb $security $release-security main" >"$root/etc/apt/sources.list.d/security.list"
  quietly chroot "$root" apt-get update
  quietly env DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get upgrade --yes --no-install-recommends
else
  echo "this machine's apt has no $release-security: the image is without security updates" >&2
fi
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/cache/apt/*.bin "$root"/var/lib/apt/lists/* "$root"/var/log/*.log
rm -rf "$root"/usr/share/doc "$root"/usr/share/man "$root"/usr/share/locale "$root"/usr/share/info
mkdir -p "$root"/usr/share/man/man1
tar -C "$root" --numeric-owner -c . | docker import -c 'CMD ["python3"]' - "$name" >/dev/null
