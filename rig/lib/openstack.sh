# shellcheck shell=bash
# Sourced by `rig`: Keystone, Placement, Glance, Neutron and Nova (real code from PyPI) on one private MariaDB, without agents,
# broker or hypervisor. See openstack/serve.py for how a service runs and openstack/plugin for what stands in for hardware.
#
# Data: migrations and first objects take half a minute, so they are made once, kept as a snapshot in the cache (its name is a
# hash of everything it is made from), and every start unpacks that (seed.sh). Configuration is rendered per rig. The database listens on a
# unix socket only. Not here: making the seed (seed.sh), installing (build.sh), faults (faults.py).

services="keystone placement glance neutron nova"
venv=$cache/venv
export RIG_VENV=$venv
openstack=$root/openstack

mariadbd_program() {
  local p
  for p in "$(command -v mariadbd)" /usr/sbin/mariadbd /usr/libexec/mariadbd; do [ -x "$p" ] && { printf '%s' "$p"; return; }; done
  return 1
}
seed_file() {
  printf '%s/seed-%s.tar' "$cache" "$(cat "$openstack"/requirements.lock "$openstack"/seed_objects.py "$openstack"/etc/*.in \
    "$root/lib/seed.sh" <("$(mariadbd_program)" --version) | sha256sum | cut -c1-12)"
}
database_options() {
  printf '%s\n' --no-defaults ; [ "$(id -u)" != 0 ] || printf '%s\n' --user=root      # it wants to be told when it is root, and only then
  printf '%s\n' "--datadir=$state/mysql" --innodb-flush-method=nosync --innodb-log-file-size=24M
}
start_database() {
  local options; mapfile -t options < <(database_options)
  start mysql "$(mariadbd_program)" "${options[@]}" "--socket=$state/mysql.sock" "--pid-file=$state/mysql.own-pid" \
    --skip-networking --skip-grant-tables --skip-name-resolve --skip-log-bin --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 \
    --innodb-buffer-pool-size=192M --max-connections=500 --character-set-server=utf8mb4 --performance-schema=off
  await mysql 30 test -S "$state/mysql.sock"
}
venv_python() { # byte code matters: without it every start takes twice as long
  env -u PYTHONDONTWRITEBYTECODE PYTHONPATH="$openstack/plugin:$openstack" "$venv/bin/python" "$@"
}
fork_services() { # NAME...: all from one process, which imports once what they share; each writes its own pid file
  local part list=() port
  for part in "$@"; do port=${part^^}_PORT; list+=("$part:${!port}"); done
  env -u PYTHONDONTWRITEBYTECODE PYTHONPATH="$openstack/plugin" REVEILLE_RIG_PROCESS="$state" RIG_FAULTS="$state/faults" \
    OS_KEYSTONE_CONFIG_DIR="$state/etc" OS_KEYSTONE_CONFIG_FILES=keystone.conf OS_PLACEMENT_CONFIG_DIR="$state/etc" \
    OS_GLANCE_CONFIG_DIR="$state/etc" OS_GLANCE_CONFIG_FILES=glance-api.conf \
    OS_NEUTRON_CONFIG_DIR="$state/etc" OS_NEUTRON_CONFIG_FILES=neutron.conf \
    OS_NOVA_CONFIG_DIR="$state/etc" OS_NOVA_CONFIG_FILES="$venv/etc/nova/api-paste.ini;nova.conf" \
    "$venv/bin/python" "$openstack/serve.py" all "${list[@]}" "--state=$state" </dev/null >>"$state/log/serve.log" 2>&1 8>&- 9>&-
}
await_service() { # NAME: until it answers HTTP
  local port=${1^^}_PORT
  await "$1" 120 curl -s -o /dev/null --max-time 5 "http://127.0.0.1:${!port}/"
}
start_service() { # one of $services, alone (after a kill)
  fork_services "$1" || die "$1 could not be started." "See $state/log/serve.log"
  await_service "$1"
}

start_openstack() {
  local seed part forker
  seed=$(seed_file)
  if [ ! -s "$seed" ]; then
    ( exec 9>"$cache/.seed-lock"; flock 9; [ -s "$seed" ] || make_seed "$seed" ) || exit 1
  fi
  tar -C "$state" -xf "$seed" || die "the OpenStack seed $seed could not be unpacked." "Remove that file and try again."
  "$python" "$openstack/render.py" || die "the OpenStack configuration could not be written." "See above."
  # shellcheck disable=SC2086
  fork_services $services 2>/dev/null & forker=$!           # imports while the database starts; it writes to serve.log
  start_database
  venv_python "$openstack/endpoints.py" || die "the service catalogue could not be written." "See above."
  : >"$state/database-ready"
  wait "$forker" || die "the OpenStack services could not be started." "See $state/log/serve.log"
  for part in $services; do await_service "$part"; done
}
