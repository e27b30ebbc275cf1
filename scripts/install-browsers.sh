#!/bin/sh
# Chromium and Firefox ESR for the tests: what is installed is used, what is absent comes from Debian's packages.
set -eu

wanted=""
command -v chromium >/dev/null 2>&1 || wanted="$wanted chromium"
command -v firefox-esr >/dev/null 2>&1 || wanted="$wanted firefox-esr"
command -v node >/dev/null 2>&1 || wanted="$wanted nodejs"
command -v npm >/dev/null 2>&1 || wanted="$wanted npm"
[ -z "$wanted" ] && exit 0

# Pages need letters: a minimal machine has no font at all.
packages="$wanted fonts-dejavu-core"
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "The tests run real browsers, and these are absent:$wanted" >&2
    echo "Install them (on Debian, as root: apt-get install$packages) and try again." >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# shellcheck disable=SC2086  # a list of words
apt-get install -q -y --no-install-recommends $packages
