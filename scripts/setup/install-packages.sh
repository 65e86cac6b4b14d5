#!/bin/bash
# install-packages.sh PACKAGE ...: installs Debian packages as root and leaves every service as it is on this machine.
#
# Packages such as postgresql and docker.io start their service and enable it for the next boot. OwlClaw's tests start their own
# instances of these programs, so this script refuses both: policy-rc.d (see invoke-rc.d(8)) while apt runs, and then the
# links by which services that were not enabled before would start at boot.
set -eu
export DEBIAN_FRONTEND=noninteractive
# Tests have a folder in place of the machine.
root=${INSTALL_ROOT:-}
policy=$root/usr/sbin/policy-rc.d

enabled() {
  find "$root"/etc/systemd "$root"/etc/rc[2-5].d -type l ! -name 'K*' 2>/dev/null | sort
}

before=$(mktemp)
after=$(mktemp)
made_policy=
restore() {
  if [ -n "$made_policy" ]; then rm -f "$policy"; fi
  enabled >"$after"
  comm -13 "$before" "$after" | while IFS= read -r link; do
    case $link in
      # K: the service is stopped in this runlevel, which keeps later updates of the package from enabling it.
      "$root"/etc/rc*) number=$(basename "$link"); mv "$link" "$(dirname "$link")/K01${number#S[0-9][0-9]}" ;;
      *) rm -f "$link" ;;
    esac
  done
  rm -f "$before" "$after"
}
trap restore EXIT
enabled >"$before"
if [ ! -e "$policy" ]; then
  made_policy=yes
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi

install() { apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"; }
# The package lists may be old or absent, as in a fresh container: then the first try fails quickly.
install "$@" || { apt-get update -q && install "$@"; }
