#!/bin/sh
# nginx and promtool for the tests: what is installed is used, what is absent comes from Debian's packages.
set -eu

wanted=""
command -v nginx >/dev/null 2>&1 || [ -x /usr/sbin/nginx ] || wanted="$wanted nginx-light"
command -v promtool >/dev/null 2>&1 || wanted="$wanted prometheus"
[ -z "$wanted" ] && exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "Some tests run real servers and tools, and packages are absent:$wanted" >&2
    echo "Install them (on Debian, as root: $0) and try again; until then these tests are skipped." >&2
    [ -z "${CI:-}" ] # where no one reads about skips, they are a failure
    exit
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
case "$wanted" in
*nginx-light*) apt-get install -q -y --no-install-recommends nginx-light ;;
esac
case "$wanted" in
*prometheus*)
    # One program of the package, without the server and its many parts.
    folder=$(mktemp -d)
    chmod 755 "$folder"
    (cd "$folder" && apt-get download -q prometheus && dpkg-deb -x prometheus_*.deb parts)
    install -m 755 "$folder/parts/usr/bin/promtool" /usr/local/bin/promtool
    rm -r "$folder"
    ;;
esac
