"""Reserve free TCP ports on 127.0.0.1 for one rig.

    ports.py HOME FILE KEY...     appends KEY=PORT lines to FILE

Reads every other rig's reservations (HOME/*/ports), under one lock, so rigs that start at the same moment never choose the
same port. Takes ports below the range from which the kernel serves outgoing connections. Does not hold the ports open: between
here and the start of the part only this lock and the random choice keep others away.
"""
import fcntl
import glob
import os
import random
import re
import socket
import sys


def ephemeral_start():
    try:
        with open('/proc/sys/net/ipv4/ip_local_port_range') as f:
            return int(f.read().split()[0])
    except (OSError, ValueError):
        return 32768


def free(port):
    with socket.socket() as s:
        try:
            s.bind(('127.0.0.1', port))
        except OSError:
            return False
    return True


def main():
    home, own, keys = sys.argv[1], sys.argv[2], sys.argv[3:]
    top = ephemeral_start()
    candidates = list(range(20000, top) if top > 21000 else range(40000, 60000))
    random.shuffle(candidates)
    with open(os.path.join(home, '.lock'), 'a') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        taken = set()
        for f in glob.glob(os.path.join(glob.escape(home), '*', 'ports')) + glob.glob(os.path.join(glob.escape(home), '*', 'nodes', '*', 'ports')):
            with open(f) as h:
                taken.update(int(p) for p in re.findall(r'=(\d+)', h.read()))
        lines = []
        for key in keys:
            while True:
                if not candidates:
                    sys.exit('ports.py: no free port on 127.0.0.1 between 20000 and %d' % top)
                port = candidates.pop()
                if port not in taken and free(port):
                    break
            taken.add(port)
            lines.append('%s=%d\n' % (key, port))
        with open(own, 'a') as h:
            h.write(''.join(lines))


main()
