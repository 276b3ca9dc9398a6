#!/usr/bin/env bash
# Stands before kubeadm inside a real node of the rig. A node shares its machine's network and disks, so that its kubelet needs
# patches; a plan of a registration server may not bring any, and they come from the machine's side: a join whose configuration is
# of an agent (JSON) and names no patches is given the node's own. Everything else goes to kubeadm as it is.
# Copied to the node's bin/ with a file "of" beside it that says whose node it is.
here=$(dirname "$(readlink -f "$0")")
# shellcheck disable=SC1091
. "$here/of"
# shellcheck disable=SC2154
dir=$state/nodes/$node
PATH=$(printf %s "$PATH" | tr ':' '\n' | grep -vxF "$here" | paste -sd:)
words=("$@"); config=''
if [ "${1:-}" = join ]; then
  for i in "${!words[@]}"; do [ "${words[$i]}" != --config ] || config=$((i + 1)); done
fi
file=${config:+${words[$config]:-}}
if [ -n "$file" ] && [ "$(head -c 1 "$file" 2>/dev/null)" = '{' ] && ! grep -q '"patches"' "$file"; then
  umask 077
  patched=$(mktemp "$dir/join-XXXXXX") || exit 1
  trap 'rm -f "$patched"' EXIT
  sed "1s|^{|{\"patches\":{\"directory\":\"$dir/patches\"},|" "$file" >"$patched" || exit 1
  words[config]=$patched
  kubeadm "${words[@]}"
  exit
fi
exec kubeadm "$@"
