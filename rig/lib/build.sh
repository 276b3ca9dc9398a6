# shellcheck shell=bash
# Sourced by `rig`: makes or installs what is missing, and says plainly what it cannot get by itself.
#
# Data: Go programs from programs/*/go.mod (pinned versions, ordinary `go build`) into $cache/bin; the OpenStack services from PyPI
# (openstack/requirements.lock, hashes checked) into $cache/venv, moto (ec2/requirements.lock) into $cache/ec2-venv; a few Debian packages by apt. Everything is kept for later runs
# and rebuilt when its pin changes. Nothing is started here.

declare -A module_of=(
  [etcd]=etcd:go.etcd.io/etcd/server/v3
  [kube-apiserver]=kubernetes:k8s.io/kubernetes/cmd/kube-apiserver
  [kube-controller-manager]=kubernetes:k8s.io/kubernetes/cmd/kube-controller-manager
  [kubectl]=kubernetes:k8s.io/kubernetes/cmd/kubectl
  [kubeadm]=kubernetes:k8s.io/kubernetes/cmd/kubeadm
  [kubelet]=kubernetes:k8s.io/kubernetes/cmd/kubelet
  [kwok]=kwok:sigs.k8s.io/kwok/cmd/kwok
  [aws-cloud-controller-manager]=aws-cloud-controller-manager:k8s.io/cloud-provider-aws/cmd/aws-cloud-controller-manager
  [openstack-cloud-controller-manager]=openstack-cloud-controller-manager:k8s.io/cloud-provider-openstack/cmd/openstack-cloud-controller-manager
)
all_programs="etcd kube-apiserver kube-controller-manager kubectl kubeadm kubelet kwok openstack-cloud-controller-manager aws-cloud-controller-manager"

build_programs() { # PROGRAM...
  local program folder package version stamp began
  mkdir -p "$bin"
  exec 8>"$cache/.build-lock"; flock 8
  for program in "$@"; do
    [ -n "${module_of[$program]:-}" ] || die "\"$program\" is not a program of the rig." "Those there are: $all_programs openstack-services debian-packages"
    [ ! -x "$(program "$program")" ] || [ "$(program "$program")" = "$bin/$program" ] || continue   # the user's own
    folder=$root/programs/${module_of[$program]%%:*} package=${module_of[$program]#*:}
    version=$(sed -n 's/^\t*k8s.io\/kubernetes \(v[0-9.]*\).*/\1/p' "$folder/go.mod" | head -n 1)
    stamp=$(cat "$folder"/go.mod "$folder"/go.sum | sha256sum | cut -c1-16)
    [ ! -x "$bin/$program" ] || [ "$(cat "$bin/.$program.stamp" 2>/dev/null)" != "$stamp" ] || continue
    command -v go >/dev/null 2>&1 || die "$program has to be built once, and there is no Go compiler (\"go\") on PATH." \
      "Install Go 1.26 or newer, or, for etcd, kube-apiserver and kubectl, set KUBEBUILDER_ASSETS to a folder that holds them."
    began=$EPOCHREALTIME
    say "building $program (the first Kubernetes program takes some minutes, later ones less than one) ..."
    # Without the version stamp Kubernetes programs call themselves v0.0.0-master, and kubeadm takes offence.
    (cd "$folder" && nice -n 10 go build -trimpath -o "$bin/$program" -ldflags \
      "-s -w ${version:+-X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(cut -d. -f2 <<<"$version")}" \
      "$package") >&2 || die "building $program from $package failed; the compiler's words are above." "Go modules come from GOPROXY=$(go env GOPROXY); is it reachable?"
    printf '%s' "$stamp" >"$bin/.$program.stamp"
    say "built $program in $(since "$began")"
  done
  exec 8>&-
}

install_packages() { # WHY PACKAGE...: by apt, and only those that are missing
  local why=$1 missing=() p; shift
  for p in "$@"; do dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null 2>&1 || die "$why needs what Debian calls: ${missing[*]}." "This system has no apt-get; install them its own way."
  [ "$(id -u)" = 0 ] || die "$why needs the Debian packages: ${missing[*]}." "Only root can install them: sudo apt-get install --no-install-recommends ${missing[*]}"
  say "installing for $why: ${missing[*]} ..."
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"; } >"$cache/apt.log" 2>&1 ||
    { tail -n 5 "$cache/apt.log" >&2; die "apt-get could not install ${missing[*]}; the end of its words is above." "Try by hand: apt-get install --no-install-recommends ${missing[*]}"; }
}

venv_interpreter() {
  local found=${RIG_VENV_PYTHON:-$(for p in /usr/bin/python3.11 python3.11 python3.12 python3.13; do command -v "$p" && break; done)}
  [ -n "$found" ] || die "what comes from PyPI needs Python 3.11 (3.12 and 3.13 are untried), and none was found." \
    "apt-get install python3.11 python3.11-venv, or set RIG_VENV_PYTHON to one."
  printf '%s' "$found"
}
install_venv() { # INTERPRETER FOLDER LOCK: exactly what is locked, by its hashes
  # shellcheck disable=SC2016
  env -u PYTHONDONTWRITEBYTECODE UV_SYSTEM_CERTS=true bash -c 'set -e
    "$1" -m venv "$2.installer"; "$2.installer/bin/pip" install -q --disable-pip-version-check uv
    "$2.installer/bin/uv" venv -q --clear --python "$1" "$2"
    "$2.installer/bin/uv" pip install -q --no-deps --require-hashes --compile-bytecode --python "$2/bin/python" -r "$3"
    rm -rf "$2.installer"' - "$1" "$2" "$3" >&2
}

build_openstack() {
  local began stamp interpreter
  mariadbd_program >/dev/null || install_packages "openstack (its database)" mariadb-server-core
  need curl "apt-get install curl"
  stamp=$(sha256sum <"$openstack/requirements.lock" | cut -c1-16)
  [ "$(cat "$venv/.complete" 2>/dev/null)" != "$stamp" ] || return 0
  exec 8>"$cache/.build-lock"; flock 8
  if [ "$(cat "$venv/.complete" 2>/dev/null)" != "$stamp" ]; then
    began=$EPOCHREALTIME
    interpreter=$(venv_interpreter) || exit 1
    "$interpreter" -c 'import ensurepip' 2>/dev/null || install_packages "openstack (its virtual environment)" python3-venv ca-certificates
    say "installing the OpenStack services from PyPI ($(grep -c == "$openstack/requirements.lock") packages) ..."
    install_venv "$interpreter" "$venv" "$openstack/requirements.lock" ||
      die "the OpenStack services could not be installed into $venv; see above." "They come from PyPI by pip; is it reachable?"
    printf '%s' "$stamp" >"$venv/.complete"
    say "installed the OpenStack services in $(since "$began")"
  fi
  exec 8>&-
}

build_for() { # PART...: what the parts need
  local part
  mkdir -p "$cache" || die "the cache directory $cache could not be made." "Set RIG_CACHE to a directory you may write."
  need "$python" "The rig's helpers need Python 3.9 or newer, standard library only."
  for part in "$@"; do
    case $part in
      kubernetes) need openssl "apt-get install openssl"; build_programs etcd kube-apiserver kubectl kube-controller-manager kubeadm ;;
      openstack) build_openstack ;;
      ec2) build_ec2 ;;
      awsccm) build_programs aws-cloud-controller-manager ;;
      occm) build_programs openstack-cloud-controller-manager ;;
      kwok) need curl "apt-get install curl"; build_programs kwok ;;
      node) build_programs kubeadm kubelet
        install_packages "real nodes" containerd runc containernetworking-plugins iptables conntrack ethtool socat ;;
    esac
  done
}
