#!/bin/sh
# Installs Debian's mosquitto and strace for the tests where they are missing and where it may.
# Where it may not, it says which tests are then left out; it never fails the run.
missing=""
for tool in mosquitto strace; do
    command -v "$tool" >/dev/null 2>&1 || test -x "/usr/sbin/$tool" || missing="$missing $tool"
done
[ -z "$missing" ] && exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    reason="this system has no apt-get"
elif [ "$(id -u)" = 0 ]; then
    run=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    run="sudo -n"
else
    reason="neither root nor passwordless sudo"
fi

if [ -z "${reason:-}" ]; then
    echo "Installing$missing (for the tests)"
    # policy-rc.d keeps Debian from starting a system-wide broker that the tests do not want
    if $run apt-get -qq update && \
       $run env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -qq install -y --no-install-recommends $missing >/dev/null; then
        exit 0
    fi
    reason="apt-get could not install them"
fi
echo "Left out, because $reason:"
for tool in $missing; do
    case "$tool" in
        mosquitto) echo "  - tests marked 'mosquitto' (a real broker: restarts, redelivery, access rights)" ;;
        strace) echo "  - tests marked 'strace' (syncs counted before each acknowledgement)" ;;
    esac
done
exit 0
