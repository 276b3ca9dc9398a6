"""What every fault is made of: its entry in the catalogue, its arguments, what --off needs, and the line to the fault proxy.

Data: $RIG_STATE/active-faults.json holds, per fault and first argument, what has to be put back; changed under a lock, so that
faults may be set from several places at once. The faults themselves are in faults.py, faults_cloud.py and proxy_faults.py.
"""
import contextlib
import fcntl
import json
import urllib.error
import urllib.request

from machine import STATE, Trouble, description

CATALOGUE = {}      # name: (arguments, help, function)


def fault(name, arguments, text):
    def register(function):
        CATALOGUE[name] = (arguments, text, function)
        return function
    return register


# --- what --off needs: one JSON file, under a lock
@contextlib.contextmanager
def remembered():
    with open(STATE + '/active-faults.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            with open(STATE + '/active-faults.json') as f:
                known = json.load(f)
        except OSError:
            known = {}
        yield known
        with open(STATE + '/active-faults.json', 'w') as f:
            json.dump(known, f, indent=2)


class Act:
    """One call of a fault: its arguments, whether it is to be taken back, and what was remembered for that."""

    def __init__(self, name, arguments, off):
        self.name, self.arguments, self.off = name, arguments, off
        self.key = ' '.join([name] + arguments[:1])

    def argument(self, position=0, default=None):
        return self.arguments[position] if len(self.arguments) > position else default

    def keep(self, what=True):
        with remembered() as known:
            known.setdefault(self.key, {'name': self.name, 'arguments': self.arguments, 'undo': what})

    def recall(self):
        with remembered() as known:
            entry = known.pop(self.key, None)
        if entry is None:
            raise Trouble('"%s" is not on. What is: rig fault --active' % self.key)
        return entry['undo']


def control(method, path, body=None):
    request = urllib.request.Request(description()['control'] + path, method=method, data=json.dumps(body).encode() if body is not None else None)
    try:
        with urllib.request.urlopen(request, timeout=10) as r:
            return json.load(r)
    except urllib.error.HTTPError as refused:
        raise Trouble(json.load(refused).get('error', refused))
    except OSError as problem:
        raise Trouble('the fault proxy does not answer (%s). Is the rig up? rig status' % problem)
