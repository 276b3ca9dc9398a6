#!/usr/bin/env bash
# Stands in for systemctl inside a real node of the rig: start, stop, restart, status, is-active, is-enabled, enable, daemon-reload of
# the units kubelet and containerd. Copied to the node's bin/ with a file "of" beside it that says whose node it is.
# It only removes or makes the file "kubelet-off" and ends the kubelet by its recorded process id; the supervisor does the rest.
here=$(dirname "$(readlink -f "$0")")
[ -e "$here/of" ] || here=${RIG_NODE_DIR:?}/bin
# shellcheck disable=SC1091
. "$here/of"
# shellcheck disable=SC2154
dir=$state/nodes/$node
words=(); for w in "$@"; do case $w in -*) ;; *) words+=("$w") ;; esac; done
verb=${words[0]:-}; unit=${words[1]:-}; unit=${unit%.service}
pid() { local p s; read -r p s 2>/dev/null <"$state/pid/node-$node.$unit" || return 1; [ "$(sed 's/.*) //' "/proc/$p/stat" 2>/dev/null | cut -d' ' -f20)" = "$s" ] && echo "$p"; }
case $verb in
  daemon-reload|daemon-reexec|reset-failed) exit 0 ;;
esac
case $unit in kubelet|containerd) ;; *) echo "Unit $unit.service could not be found." >&2; exit 4 ;; esac
case $verb in
  is-active) if pid >/dev/null; then echo active; elif [ "$unit" = kubelet ] && [ ! -e "$dir/kubelet-off" ]; then echo activating; exit 3; else echo inactive; exit 3; fi ;;
  is-enabled|enable) echo enabled ;;
  status) if pid >/dev/null; then echo "● $unit.service"; echo "   Active: active (running)"; else echo "● $unit.service"; echo "   Active: inactive (dead)"; exit 3; fi ;;
  stop) [ "$unit" = kubelet ] || { echo "rig: only the kubelet can be stopped" >&2; exit 1; }; : >"$dir/kubelet-off"; p=$(pid) && kill "$p"; exit 0 ;;
  start) [ "$unit" = kubelet ] && rm -f "$dir/kubelet-off"; exit 0 ;;
  restart) [ "$unit" = kubelet ] || exit 0; p=$(pid); rm -f "$dir/kubelet-off"; [ -z "$p" ] || kill "$p"; exit 0 ;;
  *) echo "rig: this systemctl does not know \"$verb\"" >&2; exit 1 ;;
esac
