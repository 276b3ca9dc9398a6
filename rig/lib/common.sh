# shellcheck shell=bash
# Sourced by `rig`: where things are, how a part is started and ended, and how errors are told.
#
# Data: every rig is one directory, $state. A started part leaves pid/PART ("PID STARTTIME"), log/PART.log, and carries the
# mark REVEILLE_RIG_PROCESS=$state in its environment (or $state in its command line), which its children inherit. Nothing is
# ever signalled that lacks the recorded start time or the mark, so a reused process id is safe.
# Not here: what the parts are (kubernetes.sh, openstack.sh, node.sh).

say() { printf '%s\n' "$*" >&2; }
die() { # die "what was tried and went wrong" ["what to do next"]
  printf 'rig: %s\n' "$1" >&2
  [ $# -lt 2 ] || printf '     %s\n' "${@:2}" >&2
  exit 1
}
need() { # need COMMAND HOW_TO_GET_IT
  command -v "$1" >/dev/null 2>&1 || die "the program \"$1\" is needed and is not on PATH." "$2"
}
since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN{printf "%.1f s", b-a}'; }

cache=${RIG_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/reveille-rig}
home=${RIG_HOME:-${TMPDIR:-/tmp}/reveille-rig}
bin=$cache/bin
python=${RIG_PYTHON:-python3}

use_rig() { # use_rig NAME: sets $name and $state
  name=$1
  [[ $name =~ ^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$ ]] ||
    die "\"$name\" cannot name a rig." "Use 1 to 32 of a-z, 0-9 and -, for example: rig up --name blue"
  state=$home/$name
  # The longest unix socket below the state directory is nodes/NODE/cri.sock.ttrpc; the kernel allows 107 bytes in all.
  [ ${#state} -le 58 ] || die "the state directory $state is too long a path (${#state} bytes, at most 58): unix sockets below it would not open." \
    "Set RIG_HOME to a short directory, for example: RIG_HOME=/tmp/r"
  export RIG_NAME=$name RIG_STATE=$state RIG_CACHE=$cache RIG_HOME=$home RIG_ROOT=$root RIG_BIN=$bin
}
must_be_up() {
  [ -e "$state/ports" ] || die "there is no rig \"$name\" (looked in $state)." "Start one: rig up --name $name" "Those there are: rig status"
}

# --- ports: reserved below the range the kernel hands out to clients, so that no outgoing connection takes one first
reserve_ports() { # reserve_ports KEY...: appends KEY=PORT lines to $state/ports and sets the variables
  "$python" "$root/lib/ports.py" "$home" "$state/ports" "$@" || die "no free ports could be reserved." "See the message above."
  load_ports
}
load_ports() {
  set -a
  # shellcheck disable=SC1091
  . "$state/ports"
  set +a
}

# --- processes
start_time() { # of a process id; empty when it has ended (a zombie has ended, too: some machines reap late)
  local line
  { line=$(<"/proc/$1/stat"); } 2>/dev/null || return 0
  line=${line##*) }
  case $line in Z*|X*) return 0 ;; esac
  # shellcheck disable=SC2086
  set -- $line; printf '%s' "${20}"
}
marked() { # does the process still carry the name this rig gave it?
  grep -qzxF "REVEILLE_RIG_PROCESS=$state" "/proc/$1/environ" 2>/dev/null || grep -qF -- "$state" "/proc/$1/cmdline" 2>/dev/null
}
running() { # the recorded process lives; says nothing about whether we may signal it
  local pid began
  read -r pid began 2>/dev/null <"$state/pid/$1" && [ -n "$began" ] && [ "$(start_time "$pid")" = "$began" ]
}
pid_of() { # pid_of PART: prints its process id while it lives and carries the mark
  local pid
  for _ in {1..50}; do      # a process that is just being started cannot show the mark yet
    running "$1" || return 1
    read -r pid _ <"$state/pid/$1"
    ! marked "$pid" || { printf '%s' "$pid"; return 0; }
    sleep 0.02
  done
  return 1
}
start() { # start PART COMMAND...: in the background, in a session of its own, holding none of our files
  local part=$1; shift
  setsid env REVEILLE_RIG_PROCESS="$state" "$@" >>"$state/log/$part.log" 2>&1 </dev/null 8>&- 9>&- &
  local pid=$!
  disown "$pid"
  record "$part" "$pid"
}
record() { # record PART PID
  printf '%s %s\n' "$2" "$(start_time "$2")" >"$state/pid/$1"
}
await() { # await PART SECONDS COMMAND...: until COMMAND succeeds; gives up at once when the part has ended
  local part=$1 end=$((SECONDS + $2)); shift 2
  until "$@" >/dev/null 2>&1; do
    running "$part" || { tail -n 15 "$state/log/$part.log" >&2; die "$part ended before it was ready; the end of its log is above." "All of it: rig logs --name $name $part"; }
    [ $SECONDS -lt $end ] || { tail -n 15 "$state/log/$part.log" >&2; die "$part was not ready in time; the end of its log is above." "All of it: rig logs --name $name $part"; }
    sleep 0.1
  done
}
stop_parts() { # stop_parts PART...: asks all of them, then waits for each; a frozen one is thawed so that it can hear
  local part pid deadline
  for part in "$@"; do
    if pid=$(pid_of "$part"); then kill -TERM "$pid" 2>/dev/null; kill -CONT "$pid" 2>/dev/null; fi
  done
  deadline=$((SECONDS + ${RIG_STOP_SECONDS:-4}))
  for part in "$@"; do
    while pid=$(pid_of "$part"); do
      [ $SECONDS -lt $deadline ] || kill -KILL "$pid" 2>/dev/null
      sleep 0.03
    done
    rm -f "$state/pid/$part"
  done
}
marked_processes() { # every process with this rig's mark, known to us or not
  local file
  for file in $(grep -lszxF "REVEILLE_RIG_PROCESS=$state" /proc/[0-9]*/environ; grep -lsF -- "--state=$state" /proc/[0-9]*/cmdline); do
    file=${file#/proc/}; file=${file%%/*}
    [ -z "$(start_time "$file")" ] || [ "$file" = $$ ] || printf '%s\n' "$file"
  done | sort -un
}
sweep() { # ends what was started and not recorded: grandchildren, and parts of an `up` that was cut short
  local pid
  for _ in 1 2 3; do
    set -- ; for pid in $(marked_processes); do set -- "$@" "$pid"; done
    [ $# -gt 0 ] || return 0
    for pid in "$@"; do kill -KILL "$pid" 2>/dev/null; done
    sleep 0.2
  done
}
describe() { # rig.json, env, clouds.yaml, rosters: from what is in the state directory now
  RIG_KUBECTL=$(program kubectl); export RIG_KUBECTL
  "$python" "$root/lib/describe.py" "$state" || die "the rig runs, but its description could not be written to $state." "See the message above."
}
