# shellcheck shell=bash
# Sourced by `rig`: Keystone, Placement, Glance, Neutron and Nova (real code from PyPI) on one private MariaDB, without agents,
# broker or hypervisor. See openstack/serve.py for how a service runs and openstack/plugin for what stands in for hardware.
#
# Data: migrations and first objects take half a minute, so they are made once, kept as a snapshot in the cache (its name is a
# hash of everything it is made from), and every start unpacks that. Configuration is rendered per rig. The database listens on a
# unix socket only. Not here: installing (build.sh), faults (faults.py).

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
  printf '%s/seed-%s.tar' "$cache" "$(cat "$openstack"/requirements.lock "$openstack"/seed_objects.py "$openstack"/osapi.py \
    "$openstack"/etc/*.in "$root/lib/openstack.sh" | sha256sum | cut -c1-12)"
}
database_options() {
  printf '%s\n' --no-defaults "--user=$(id -un)" "--datadir=$state/mysql" --innodb-flush-method=nosync --innodb-log-file-size=24M
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
  fork_services $services & forker=$!           # imports while the database starts
  start_database
  venv_python "$openstack/endpoints.py" || die "the service catalogue could not be written." "See above."
  : >"$state/database-ready"
  wait "$forker" || die "the OpenStack services could not be started." "See $state/log/serve.log"
  for part in $services; do await_service "$part"; done
}

# --- the seed: made in a rig of its own, beside the one that is starting
make_seed() ( # FILE; a subshell, so that state and ports of the rig that waits stay as they are
  began=$EPOCHREALTIME
  say "making the OpenStack seed (once for this version of the rig, about half a minute) ..."
  use_rig "seed-$$"
  mkdir -p "$state"/{pid,log,etc,lock,mysql,nova,neutron,faults/console,glance-images,glance-tasks,glance-staging,fernet-keys,credential-keys}
  chmod 700 "$state/fernet-keys" "$state/credential-keys"
  # shellcheck disable=SC2317,SC2329
  forget() { stop_parts nova neutron glance placement keystone mysql; sweep; rm -rf "$state"; }
  trap forget EXIT
  reserve_ports KEYSTONE_PORT NOVA_PORT NEUTRON_PORT PLACEMENT_PORT GLANCE_PORT PROXY_KEYSTONE_PORT
  "$python" "$openstack/render.py"
  seed_schemas
  : >"$state/database-ready"
  start_service keystone
  venv_python "$openstack/seed_objects.py" identity || die "users and projects could not be seeded." "See above."
  fork_services placement glance neutron nova
  for part in placement glance neutron nova; do await_service "$part"; done
  venv_python "$openstack/seed_objects.py" cloud || die "networks, flavors and the image could not be seeded." "See above."
  sleep 5                                       # the other compute hosts register
  stop_parts nova neutron glance placement keystone
  RIG_STOP_SECONDS=20 stop_parts mysql          # a clean shutdown, so that the copy needs no recovery
  tar -C "$state" --exclude=./pid --exclude=./log --exclude=./etc --exclude=./ports --exclude=./database-ready --exclude=./mysql/ibtmp1 \
    --exclude=./mysql.sock --exclude=./mysql.own-pid -cSf "$1.tmp" . && mv "$1.tmp" "$1" || die "the seed could not be written to $1." "Is there room? It needs 160 MB."
  say "seed made in $(since "$began")"
)
seed_step() { # COMMAND...
  "$@" >>"$state/log/seed.log" 2>&1 || { tail -n 30 "$state/log/seed.log" >&2; die "a step of the OpenStack seed failed: $*" "The end of its log is above."; }
}
bootstrap_database() { # what mariadb-install-db would do; Debian's core package lacks a program that script wants
  local options; mapfile -t options < <(database_options)
  { printf 'create database mysql;\nuse mysql;\n'
    cat /usr/share/mysql/mysql_system_tables.sql /usr/share/mysql/mysql_performance_tables.sql /usr/share/mysql/mysql_system_tables_data.sql
  } | "$(mariadbd_program)" "${options[@]}" --bootstrap
}
seed_schemas() {
  local b=$venv/bin url k=http://127.0.0.1:$KEYSTONE_PORT/v3 nova_manage user group
  url='{scheme}://{username}@{hostname}/%s?{query}'   # filled by nova at run time, so the snapshot is not tied to a path
  user=$(id -un); group=$(id -gn)
  seed_step bootstrap_database
  start_database
  venv_python - <<'END' || die "the databases could not be created." "See above."
import os, pymysql
cursor = pymysql.connect(unix_socket=os.environ['RIG_STATE'] + '/mysql.sock', user='root').cursor()
for database in 'keystone placement glance neutron nova_api nova nova_cell0'.split():
    cursor.execute('create database %s character set utf8mb3' % database)
END
  nova_manage="$b/nova-manage --config-file $state/etc/nova.conf"
  export PYTHONPATH=$openstack/plugin
  seed_step "$b/keystone-manage" --config-file "$state/etc/keystone.conf" db_sync
  seed_step "$b/keystone-manage" --config-file "$state/etc/keystone.conf" fernet_setup --keystone-user "$user" --keystone-group "$group"
  seed_step "$b/keystone-manage" --config-file "$state/etc/keystone.conf" credential_setup --keystone-user "$user" --keystone-group "$group"
  seed_step "$b/keystone-manage" --config-file "$state/etc/keystone.conf" bootstrap --bootstrap-password rigadmin --bootstrap-region-id RegionOne \
    --bootstrap-admin-url "$k" --bootstrap-internal-url "$k" --bootstrap-public-url "$k"
  seed_step env OS_PLACEMENT_CONFIG_DIR="$state/etc" "$b/placement-manage" --config-file "$state/etc/placement.conf" db sync
  seed_step "$b/glance-manage" --config-file "$state/etc/glance-api.conf" db_sync
  seed_step "$b/neutron-db-manage" --config-file "$state/etc/neutron.conf" upgrade heads
  # shellcheck disable=SC2086
  {
    seed_step $nova_manage api_db sync
    # shellcheck disable=SC2059
    seed_step $nova_manage cell_v2 map_cell0 --database_connection "$(printf "$url" nova_cell0)"
    seed_step $nova_manage db sync
    # shellcheck disable=SC2059
    seed_step $nova_manage cell_v2 create_cell --name cell1 --transport-url fake:/ --database_connection "$(printf "$url" nova)"
  }
}
