# shellcheck shell=bash
# Sourced by `rig`: makes the OpenStack seed: databases, schemas, users, catalogue and first objects, as one sparse tar in the cache.
#
# Data: runs in a rig of its own ("seed-PID") beside the one that is starting, through the services' own tools (keystone-manage,
# nova-manage, ...) and then their APIs (seed_objects.py); stops everything, packs the state directory, forgets it. Nothing in the tar
# is tied to a path or a port: configuration is rendered and the catalogue rewritten at every start. Starts nothing that stays.

make_seed() ( # FILE; a subshell, so that state and ports of the rig that waits stay as they are
  began=$EPOCHREALTIME
  say "making the OpenStack seed (once for this version of the rig, about half a minute) ..."
  use_rig "seed-$$"
  mkdir -p "$state"/{pid,log,etc,lock,mysql,nova,neutron,faults/console,glance-images,glance-tasks,glance-staging,fernet-keys,receipt-keys,credential-keys}
  chmod 700 "$state"/*-keys
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
  PYTHONWARNINGS=ignore "$@" >>"$state/log/seed.log" 2>&1 && return
  tail -n 5 "$state/log/seed.log" >&2
  cat "$state"/log/* >"$cache/seed-failed.log"
  die "a step of the OpenStack seed failed: $(basename "$1") ${*:2}" "The end of its log is above; all of it: $cache/seed-failed.log"
}
bootstrap_database() { # what mariadb-install-db would do; Debian's core package lacks a program that script wants
  local options; mapfile -t options < <(database_options)
  { printf 'create database mysql;\nuse mysql;\n'
    cat /usr/share/mysql/mysql_system_tables.sql /usr/share/mysql/mysql_performance_tables.sql /usr/share/mysql/mysql_system_tables_data.sql
  } | "$(mariadbd_program)" "${options[@]}" --bootstrap
}
seed_schemas() {
  local b=$venv/bin url k=http://127.0.0.1:$KEYSTONE_PORT/v3 nova_manage keys=()
  url='{scheme}://{username}@{hostname}/%s?{query}'   # filled by nova at run time, so the snapshot is not tied to a path
  [ "$(id -u)" != 0 ] || keys=(--keystone-user root --keystone-group root)     # asked for only when it is root
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
  seed_step "$b/keystone-manage" --config-file "$state/etc/keystone.conf" fernet_setup ${keys[@]+"${keys[@]}"}
  seed_step "$b/keystone-manage" --config-file "$state/etc/keystone.conf" credential_setup ${keys[@]+"${keys[@]}"}
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
