"""What the fault proxy does to requests while a fault is armed. See proxy.py for how requests flow.

`CATALOGUE` names every fault, its arguments and what a client sees; `rig fault` prints it. A fault with a count disarms itself
after that many requests. Where a real service can give the answer, it does (a made-up token makes Nova itself say 401); the
other answers are copied from the real services. No I/O of its own except through `ask`.
"""
import asyncio
import json
import time

import proxy_ec2

REASONS = {200: 'OK', 204: 'No Content', 400: 'Bad Request', 401: 'Unauthorized', 403: 'Forbidden', 404: 'Not Found', 410: 'Gone', 429: 'Too Many Requests',
           500: 'Internal Server Error', 503: 'Service Unavailable'}
JSON = ('Content-Type', 'application/json')

# name: (arguments with defaults, what a client sees)
CATALOGUE = {
    'nova-429': ({'count': None, 'retryAfter': 1}, 'Nova answers 429 [COUNT times] with Retry-After [SECONDS]'),
    'neutron-429': ({'count': None, 'retryAfter': 1}, 'Neutron answers 429 [COUNT times] with Retry-After [SECONDS]'),
    'nova-write-429': ({'count': None, 'retryAfter': 1}, 'Nova answers 429 to writes [COUNT times] with Retry-After [SECONDS]'),
    'neutron-write-429': ({'count': None, 'retryAfter': 1}, 'Neutron answers 429 to writes [COUNT times] with Retry-After [SECONDS]'),
    'kube-429': ({'count': None, 'retryAfter': 1}, 'kube-apiserver answers 429 [COUNT times] with Retry-After [SECONDS]'),
    'nova-500': ({'count': None}, 'Nova answers 500 [COUNT times]'),
    'neutron-500': ({'count': None}, 'Neutron answers 500 [COUNT times]'),
    'keystone-503': ({'count': None}, 'Keystone answers 503 [COUNT times]'),
    'nova-401-once': ({'count': 1}, 'Nova refuses the token once (its own 401)'),
    'neutron-401-once': ({'count': 1}, 'Neutron refuses the token once (its own 401)'),
    'token-expired': ({}, 'Nova and Neutron refuse every token issued before now; a new one from Keystone works'),
    'nova-page-fails': ({'perPage': None}, 'GET /servers/detail answers its first page [of PERPAGE servers], then 500 for every page with a marker'),
    'nova-empty-list': ({'byId': None}, 'GET /servers and /servers/detail answer 200 with no servers [and GET of one by its id answers BYID: 404 or 503]'),
    'neutron-empty-list': ({}, 'GET /ports answers 200 with no ports'),
    'neutron-elsewhere': ({}, 'the token is of another project: lists answer 200 with nothing in them, all else 404'),
    'nova-cut': ({'count': None}, 'GET /servers/detail breaks off in the middle of the body [COUNT times]'),
    'nova-slow': ({'ms': 1000}, 'Nova answers MS milliseconds late'),
    'neutron-slow': ({'ms': 1000}, 'Neutron answers MS milliseconds late'),
    'keystone-slow': ({'ms': 1000}, 'Keystone answers MS milliseconds late'),
    'nova-write-slow': ({'ms': 1000, 'count': None}, 'writes reach Nova MS milliseconds late [COUNT times], and not at all if the client hangs up before'),
    'neutron-write-slow': ({'ms': 1000, 'count': None}, 'writes reach Neutron MS milliseconds late [COUNT times], and not at all if the client hangs up before'),
    'kube-slow': ({'ms': 1000}, 'kube-apiserver answers MS milliseconds late (watches, too)'),
    'nova-delete-lost': ({}, 'DELETE of a server answers 204 and never reaches Nova'),
    'nova-timeout-after-effect': ({'count': None}, 'writes reach Nova and take effect; the answer never comes [COUNT times]'),
    'neutron-timeout-after-effect': ({'count': None}, 'writes reach Neutron and take effect; the answer never comes [COUNT times]'),
    'neutron-port-put-lost': ({'count': None}, 'PUT of a port answers 200 with the wanted values and never reaches Neutron [COUNT times]'),
    'kube-timeout-after-effect': ({'count': None}, 'writes reach kube-apiserver and take effect; the answer never comes [COUNT times]'),
    'nodes-empty-list': ({}, 'the list of nodes is empty and its watch tells nothing'),
    'nodes-watch-gap': ({}, 'node watches stay open and lose every event while this is on'),
    'nodes-watch-gone': ({}, 'node watches end with 410 Gone (too old resource version); new ones, too'),
    **proxy_ec2.CATALOGUE,
}
NODES = '/api/v1/nodes'


class Faults:
    def __init__(self):
        self.on, self.tokens = {}, {}

    # --- arming
    def arm(self, name, arguments):
        """None, or why not."""
        kind = kind_of(name)
        if kind not in CATALOGUE:
            return '"%s" is not a fault of the proxy' % kind
        defaults = CATALOGUE[kind][0]
        about = arguments.pop('about', None)
        if about is not None and not (kind.startswith('ec2-') and type(about) is list and all(type(v) is str for v in about)):
            return '%s takes "about", a list of texts, for EC2 alone' % kind
        unknown = set(arguments) - set(defaults)
        if unknown:
            return '%s takes no %s; it takes %s' % (name, ', '.join(sorted(unknown)), ', '.join(defaults) or 'nothing')
        if not all(v is None or (type(v) is int and v >= 0) for v in arguments.values()):
            return '%s takes whole numbers' % name
        self.on[name] = dict(defaults, **arguments, about=about, armedAt=time.time(), hits=0)

    def disarm(self, name=None):
        for n in [name] if name else list(self.on):
            self.on.pop(n, None)

    def armed(self):
        return {n: dict(a) for n, a in self.on.items()}

    def find(self, q, kind):
        """The name under which a fault of this kind is armed that concerns this request."""
        return next((n for n, f in self.on.items() if kind_of(n) == kind and concerns(f, q)), None)

    def hit(self, q, kind):
        """Is it armed? Then count this request against it."""
        name = self.find(q, kind)
        if not name:
            return None
        fault = self.on[name]
        fault['hits'] += 1
        q.fault = name
        if fault.get('count') is not None:
            fault['count'] -= 1
            if fault['count'] <= 0:
                del self.on[name]
        return fault

    # --- before a request is forwarded: None (forward it) or (status, headers, body)
    async def before(self, q, ask):
        service, read = q.service, q.method == 'GET'
        slow = self.on.get(service + '-slow')
        if slow:
            self.hit(q, service + '-slow')
            await asyncio.sleep(slow['ms'] / 1000)
        late = q.write and self.hit(q, service + '-write-slow')
        if late:
            await asyncio.sleep(late['ms'] / 1000)
        if service == 'ec2':
            return await proxy_ec2.before(self, q, ask)
        if service == 'keystone' and self.hit(q, 'keystone-503'):
            return error(503, 'Service Unavailable', 'The server is currently unavailable.')
        if service in ('nova', 'neutron', 'kube'):
            fault = self.hit(q, service + '-429')
            fault = fault or (q.write and self.hit(q, service + '-write-429'))
            if fault:
                return too_many(service, fault['retryAfter'])
        if service == 'nova' and self.hit(q, 'nova-500') or service == 'neutron' and self.hit(q, 'neutron-500'):
            return broken(service)
        if service in ('nova', 'neutron') and (self.too_old(q) or self.hit(q, service + '-401-once')):
            # the service itself refuses a made-up token, in its own words and without any effect
            return await ask(q, headers=[(k, 'expired' if k.lower() == 'x-auth-token' else v) for k, v in q.headers])
        if service == 'keystone' and q.method == 'POST' and q.path.endswith('/auth/tokens'):
            answer = await ask(q)
            q.went_through()
            for key, value in answer[1]:
                if key.lower() == 'x-subject-token':
                    self.tokens[value] = time.time()
            return answer
        if service == 'nova' and read and q.kind in ('/v2.1/servers', '/v2.1/servers/detail'):
            paged = self.on.get('nova-page-fails') if q.kind.endswith('detail') else None
            if paged and 'marker=' in q.query:
                self.hit(q, 'nova-page-fails')
                return broken('nova')
            if paged and paged['perPage']:
                return await ask(q, target='%s%slimit=%d' % (q.target, '&' if q.query else '?', paged['perPage']))
            if self.hit(q, 'nova-empty-list'):
                return 200, [JSON], b'{"servers": []}'
        empty = self.on.get('nova-empty-list')
        if empty and empty['byId'] and service == 'nova' and read and q.kind == '/v2.1/servers/{id}':
            return by_id(empty['byId'])
        if service == 'nova' and q.method == 'DELETE' and q.kind == '/v2.1/servers/{id}' and self.hit(q, 'nova-delete-lost'):
            return 204, [], b''
        if service == 'neutron' and read and q.kind == '/v2.0/ports' and self.hit(q, 'neutron-empty-list'):
            return 200, [JSON], b'{"ports": []}'
        if service == 'neutron' and q.path.startswith('/v2.0/') and self.hit(q, 'neutron-elsewhere'):
            listed = q.path.rpartition('/')[2]
            if read and q.path.count('/') == 2:
                return 200, [JSON], json.dumps({listed.replace('-', '_'): []}).encode()
            return not_of_the_project(listed)
        if service == 'neutron' and q.method == 'PUT' and q.kind == '/v2.0/ports/{id}' and self.hit(q, 'neutron-port-put-lost'):
            return await self.pretend_port(q, ask)
        if service == 'kube' and read and q.path == NODES and not q.watch and self.hit(q, 'nodes-empty-list'):
            status, headers, body = await ask(q, headers=[(k, 'application/json' if k.lower() == 'accept' else v) for k, v in q.headers
                                                          if k.lower() != 'accept-encoding'])
            if status == 200:
                body = json.dumps(dict(json.loads(body), items=[])).encode()
            return status, headers, body
        if q.watch and q.path == NODES and 'nodes-watch-gone' in self.on:
            self.hit(q, 'nodes-watch-gone')
            return 200, [JSON], expired_event()
        return None

    def too_old(self, q):
        fault = self.on.get('token-expired')
        token = q.header('x-auth-token')
        if not fault or not token or self.tokens.get(token, 0) > fault['armedAt']:
            return False
        return bool(self.hit(q, 'token-expired'))

    async def pretend_port(self, q, ask):
        status, headers, body = await ask(q, method='GET', body=b'')
        if status != 200:
            return status, headers, body
        port = json.loads(body)['port']
        port.update(q.json().get('port', {}))
        port['revision_number'] = port.get('revision_number', 0) + 1
        return 200, headers, json.dumps({'port': port}).encode()

    # --- while an answer passes
    def swallow_answer(self, q):
        return q.write and bool(self.hit(q, q.service + '-timeout-after-effect'))

    def cut_after(self, q, length):
        if q.method == 'GET' and q.kind == '/v2.1/servers/detail' and length and self.hit(q, 'nova-cut'):
            return length // 2
        if q.kind == 'DescribeInstances' and length and self.hit(q, 'ec2-cut'):
            return length // 2
        return None

    def passes_event(self, q, event):
        if q.path != NODES or not event:
            return True
        if 'nodes-watch-gap' in self.on:
            self.hit(q, 'nodes-watch-gap')
            return False
        if 'nodes-empty-list' in self.on and b'"type":"BOOKMARK"' not in event[:40]:
            self.hit(q, 'nodes-empty-list')
            return False
        return True

    def ends_watch(self, q, opened):
        """The last event of a watch that a fault ends, else None."""
        return expired_event() if q.path == NODES and 'nodes-watch-gone' in self.on else None


def kind_of(name):
    """Several faults of a kind may be armed at once, each as KIND@WHOSE."""
    return name.partition('@')[0]


def concerns(fault, q):
    """A fault that names ids, or the tag of a cluster, concerns the requests that have one of them among their values."""
    return fault['about'] is None or not set(fault['about']).isdisjoint(proxy_ec2.form(q.body).values())


def expired_event():
    status = {'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Failure', 'reason': 'Expired', 'code': 410,
              'message': 'too old resource version: 1 (2)'}
    return json.dumps({'type': 'ERROR', 'object': status}).encode() + b'\n'


def error(status, title, message):
    return status, [JSON], json.dumps({'error': {'code': status, 'title': title, 'message': message}}).encode()


def too_many(service, seconds):
    retry = ('Retry-After', str(seconds))
    if service == 'kube':
        body = {'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Failure', 'reason': 'TooManyRequests', 'code': 429,
                'message': 'too many requests, please try again later', 'details': {'retryAfterSeconds': seconds}}
    elif service == 'nova':
        body = {'overLimit': {'code': 429, 'message': 'Too Many Requests', 'retryAfter': str(seconds)}}
    else:
        body = {'error': {'code': 429, 'title': 'Too Many Requests', 'message': 'Too Many Requests'}}
    return 429, [JSON, retry], json.dumps(body).encode()


def by_id(status):
    if status == 404:
        return 404, [JSON], json.dumps({'itemNotFound': {'code': 404, 'message': 'Instance could not be found.'}}).encode()
    return 503, [JSON], json.dumps({'serviceUnavailable': {'code': 503, 'message': 'The cell of the instance is down.'}}).encode()


def not_of_the_project(one):
    said = {'type': 'NotFound', 'message': 'The resource %s could not be found.' % one, 'detail': ''}
    return 404, [JSON], json.dumps({'NeutronError': said}).encode()


def broken(service):
    if service == 'nova':
        return 500, [JSON], json.dumps({'computeFault': {'code': 500, 'message': 'Unexpected API Error. Please report this at '
                                        'http://bugs.launchpad.net/nova/ and attach the Nova API log if possible.'}}).encode()
    return 500, [JSON], json.dumps({'NeutronError': {'type': 'HTTPInternalServerError', 'detail': '',
                                    'message': 'Request Failed: internal server error while processing your request.'}}).encode()
