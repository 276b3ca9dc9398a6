"""The fault proxy: between clients and Keystone, Nova, Neutron, EC2 (HTTP) and kube-apiserver (plain HTTP in, TLS out).

    proxy.py STATE        reads STATE/ports; serves until ended

Data: a request is read whole, classified and counted, run past the armed faults, and forwarded on a connection of its own; the
answer is passed on byte by byte as it comes, so watches stream. Faults and counts live in memory only and are reached on the
control port:

    GET /faults    PUT /faults/NAME {arguments}    DELETE /faults[/NAME]      GET /calls    DELETE /calls

STATE/log/calls.jsonl has one line per request. Kubernetes: a request without Authorization is sent as rig-admin (client
certificate); one with its own token is sent with that. Python's standard library only. It does not rewrite addresses (answers
carry the client's own Host) and holds no connection open to the services. What each fault does is in proxy_faults.py.
"""
import asyncio
import json
import re
import ssl
import sys
import time

import proxy_ec2
import proxy_faults

HEX = re.compile(r'^(?:[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12})$', re.I)


class Request:
    """One request as it came, and what is known about it."""

    def __init__(self, service, method, target, headers, body):
        self.service, self.method, self.target, self.headers, self.body = service, method, target, headers, body
        self.path, _, self.query = target.partition('?')
        self.forwarded, self.fault, self.status, self.sent, self.entry = False, None, None, 0, None
        self.watch = service == 'kube' and re.search(r'(^|&)watch=(1|true)', self.query) is not None
        self.kind = path_class(service, self.path, body, self.watch)
        self.write = proxy_ec2.is_write(body) if service == 'ec2' else method in ('POST', 'PUT', 'PATCH', 'DELETE') and not (
            service == 'keystone' or re.search(r'/(os-getConsoleOutput|selfsubject\w*reviews|tokenreviews|subjectaccessreviews)', self.kind))

    def went_through(self):
        self.forwarded = True
        self.entry['forwarded'] += 1

    def header(self, name):
        return next((v for k, v in self.headers if k.lower() == name), None)

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError:
            return {}


def path_class(service, path, body, watch):
    """The path with names and ids taken out: what calls are counted by."""
    if service == 'ec2':
        return proxy_ec2.action(body) or path
    parts = [p for p in path.split('/') if p]
    if service == 'kube':
        # /api/v1/nodes/NAME/status, /apis/GROUP/VERSION/namespaces/NS/RESOURCE/NAME/...
        lead = 2 if parts[:1] == ['api'] else 3 if parts[:1] == ['apis'] else len(parts)
        head, rest = parts[:lead], parts[lead:]
        if rest[:1] == ['namespaces'] and len(rest) > 2:
            head, rest = head + ['namespaces', '{namespace}'], rest[2:]
        if len(rest) > 1:
            rest[1] = '{name}'
        return '/' + '/'.join(head + rest) + (' watch' if watch else '')
    parts = ['{id}' if HEX.match(p) else p for p in parts]
    if parts[-1:] == ['action'] and service == 'nova':
        try:
            parts.append(next(iter(json.loads(body))))
        except (ValueError, StopIteration):
            pass
    elif service == 'nova' and len(parts) > 4 and parts[3] in ('tags', 'metadata'):
        parts[4] = '{key}'
    return '/' + '/'.join(parts)


class Calls:
    """How often and how much, by service and path class."""

    def __init__(self, log):
        self.log = log
        self.reset()

    def reset(self):
        self.since, self.table = time.time(), {}

    def entry(self, q):
        return self.table.setdefault(q.service, {}).setdefault('%s %s' % (q.method, q.kind), {
            'calls': 0, 'forwarded': 0, 'write': q.write, 'bytesIn': 0, 'bytesOut': 0, 'statuses': {}})

    def finished(self, q, began):
        status = str(q.status or 'none')
        e = self.entry(q)
        e['statuses'][status] = e['statuses'].get(status, 0) + 1
        self.log.write(json.dumps({'time': round(began, 3), 'service': q.service, 'method': q.method, 'path': q.path, 'query': q.query, 'write': q.write,
                                   'status': q.status, 'seconds': round(time.time() - began, 3), 'forwarded': q.forwarded, 'fault': q.fault,
                                   'bytesOut': q.sent, 'agent': q.header('user-agent')}) + '\n')

    def report(self):
        total = {'calls': 0, 'writes': 0, 'bytesOut': 0}
        for service in self.table.values():
            for e in service.values():
                total['calls'] += e['calls']
                total['bytesOut'] += e['bytesOut']
                total['writes'] += e['calls'] if e['write'] else 0
        return {'since': round(self.since, 3), 'seconds': round(time.time() - self.since, 1), 'total': total, 'services': self.table}


async def read_head(reader):
    """Request or status line and headers; None at the end of the connection."""
    try:
        raw = await reader.readuntil(b'\r\n\r\n')
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = raw.decode('latin-1').split('\r\n')[:-2]
    return first, [(k.strip(), v.strip()) for k, _, v in (line.partition(':') for line in lines)]


async def read_chunks(reader):
    while True:
        line = await reader.readline()
        if not line:                     # broken off, which is not the same as ended
            raise asyncio.IncompleteReadError(b'', None)
        size = int(line.split(b';')[0], 16)
        data = await reader.readexactly(size)
        await reader.readline()
        if not size:
            return
        yield data


class Proxy:
    def __init__(self, state, ports):
        self.state, self.ports = state, ports
        self.calls = Calls(open(state + '/log/calls.jsonl', 'a', buffering=1))
        self.faults = proxy_faults.Faults()
        self.tls = {}

    def tls_context(self, own_token):
        """Trusts the rig's CA; with the administrator's certificate unless the client brought a token of its own."""
        if own_token not in self.tls:
            context = ssl.create_default_context(cafile=self.state + '/pki/ca.crt')
            if not own_token:
                context.load_cert_chain(self.state + '/pki/admin.crt', self.state + '/pki/admin.key')
            self.tls[own_token] = context
        return self.tls[own_token]

    async def connect(self, q):
        name = 'API_PORT' if q.service == 'kube' else q.service.upper() + '_PORT'
        tls = self.tls_context(bool(q.header('authorization'))) if q.service == 'kube' else None
        return await asyncio.open_connection('127.0.0.1', self.ports[name], ssl=tls, limit=1 << 20)

    async def serve(self, service, reader, writer):
        try:
            while True:
                head = await read_head(reader)
                if not head:
                    return
                line, headers = head
                method, target, _ = line.split(' ', 2)
                fields = {k.lower(): v for k, v in headers}
                if fields.get('expect', '').lower() == '100-continue':
                    writer.write(b'HTTP/1.1 100 Continue\r\n\r\n')
                if fields.get('transfer-encoding', '').lower() == 'chunked':
                    body = b''.join([c async for c in read_chunks(reader)])
                else:
                    body = await reader.readexactly(int(fields.get('content-length') or 0))
                q = Request(service, method, target, headers, body)
                q.entry = entry = self.calls.entry(q)
                began = time.time()
                entry['calls'] += 1
                entry['bytesIn'] += len(body)
                try:
                    keep = await self.answer(q, entry, reader, writer)
                finally:
                    self.calls.finished(q, began)
                if not keep or fields.get('connection', '').lower() == 'close':
                    return
        except (ConnectionError, asyncio.IncompleteReadError, ValueError, ssl.SSLError, TimeoutError):
            return
        finally:
            writer.close()

    async def answer(self, q, entry, reader, writer):
        """True when the client may send another request on this connection."""
        effect = await until_gone(self.faults.before(q, self.ask), reader)
        if client_gone(reader):
            return False
        if effect:
            status, headers, body = effect
            q.status = status
            entry['bytesOut'] += len(body)
            q.sent = len(body)
            writer.write(plain_answer(status, headers, b'' if q.method == 'HEAD' else body))
            await writer.drain()
            return True
        try:
            up_reader, up_writer = await self.connect(q)
        except OSError:
            return False              # refused there, so cut here: the client sees a dead service, not an answer of ours
        q.went_through()
        try:
            upgrade = q.header('upgrade')
            up_writer.write(request_bytes(q, 'Upgrade' if upgrade else 'close'))
            await up_writer.drain()
            head = await until_gone(read_head(up_reader), reader)
            if not head:
                return False
            line, headers = head
            q.status = int(line.split(' ')[1])
            if upgrade and q.status == 101:
                writer.write(head_bytes(line, headers))
                await asyncio.gather(copy(reader, up_writer), copy(up_reader, writer))
                return False
            if self.faults.swallow_answer(q):
                await until_gone(asyncio.sleep(3600), reader)
                return False
            headers = [(k, v) for k, v in headers if k.lower() not in ('connection', 'keep-alive')]
            names = {k.lower(): v for k, v in headers}
            chunked = names.get('transfer-encoding', '').lower() == 'chunked'
            framed = chunked or 'content-length' in names or q.method == 'HEAD' or q.status in (204, 304)
            if not framed:
                headers.append(('Connection', 'close'))
            writer.write(head_bytes(line, headers))

            async def on(data):
                entry['bytesOut'] += len(data)
                q.sent += len(data)
                writer.write(data)
                await writer.drain()
            if q.watch and chunked:
                return await self.stream_watch(q, on, up_reader, reader)
            cut = self.faults.cut_after(q, int(names.get('content-length') or 0))
            if cut is not None:
                await on(await up_reader.readexactly(cut))
                return False
            tail = b''
            while data := await until_gone(up_reader.read(65536), reader):
                await on(data)
                tail = (tail + data)[-5:]
            # an answer that broke off there breaks off here, too
            whole = tail == b'0\r\n\r\n' if chunked else q.sent == int(names.get('content-length') or 0)
            return framed and (whole or q.method == 'HEAD' or q.status in (204, 304))
        finally:
            up_writer.close()

    async def stream_watch(self, q, on, up_reader, reader):
        """A watch, event by event, so that a fault can take one out of the stream."""
        rest = b''
        chunks = read_chunks(up_reader)
        opened = time.time()
        while True:
            try:
                data = await until_gone(chunks.__anext__(), reader, lambda: self.faults.ends_watch(q, opened))
            except StopAsyncIteration:
                await on(b'0\r\n\r\n')
                return True
            if data is None:              # the client went away, or a fault ends this watch
                last = self.faults.ends_watch(q, opened)
                if last:
                    await on(b'%x\r\n%s\r\n0\r\n\r\n' % (len(last), last))
                return False
            *events, rest = (rest + data).split(b'\n')
            out = b''.join(e + b'\n' for e in events if self.faults.passes_event(q, e))
            if out:
                await on(b'%x\r\n%s\r\n' % (len(out), out))

    async def ask(self, q, method=None, target=None, headers=None, body=None):
        """The whole answer of the service itself to a (changed) request: status, headers, body. For faults that alter answers."""
        changed = Request(q.service, method or q.method, target or q.target,
                          [(k, v) for k, v in q.headers if k.lower() != 'accept-encoding'] if headers is None else headers,
                          q.body if body is None else body)
        up_reader, up_writer = await self.connect(changed)
        try:
            up_writer.write(request_bytes(changed, 'close'))
            line, answer = await read_head(up_reader)
            fields = {k.lower(): v for k, v in answer}
            if fields.get('transfer-encoding', '').lower() == 'chunked':
                data = b''.join([c async for c in read_chunks(up_reader)])
            else:
                data = await up_reader.read()
            drop = ('connection', 'transfer-encoding', 'content-length', 'keep-alive')
            return int(line.split(' ')[1]), [(k, v) for k, v in answer if k.lower() not in drop], data
        finally:
            up_writer.close()

    async def control(self, reader, writer):
        try:
            head = await read_head(reader)
            if not head:
                return
            method, path, _ = head[0].split(' ', 2)
            length = next((int(v) for k, v in head[1] if k.lower() == 'content-length'), 0)
            body = await reader.readexactly(length)
            status, answer = self.controlled(method, path.strip('/').split('/'), body)
            writer.write(plain_answer(status, [('Content-Type', 'application/json'), ('Connection', 'close')], json.dumps(answer, indent=2).encode() + b'\n'))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            writer.close()

    def controlled(self, method, path, body):
        if path == ['calls'] and method in ('GET', 'DELETE'):
            answer = self.calls.report()
            if method == 'DELETE':
                self.calls.reset()
            return 200, answer
        if path[0] == 'faults' and method == 'GET':
            return 200, self.faults.armed()
        if path[0] == 'faults' and method == 'PUT' and len(path) == 2:
            error = self.faults.arm(path[1], json.loads(body or b'{}'))
            return (400, {'error': error}) if error else (200, self.faults.armed())
        if path[0] == 'faults' and method == 'DELETE':
            self.faults.disarm(path[1] if len(path) > 1 else None)
            return 200, self.faults.armed()
        return 404, {'error': 'GET|DELETE /calls, GET|DELETE /faults, PUT|DELETE /faults/NAME'}


def request_bytes(q, connection):
    keep = [(k, v) for k, v in q.headers if k.lower() not in ('connection', 'content-length', 'transfer-encoding', 'expect')]
    if q.body or q.method in ('POST', 'PUT', 'PATCH'):
        keep.append(('Content-Length', str(len(q.body))))
    return head_bytes('%s %s HTTP/1.1' % (q.method, q.target), keep + [('Connection', connection)]) + q.body


def head_bytes(line, headers):
    return ('\r\n'.join([line] + ['%s: %s' % h for h in headers]) + '\r\n\r\n').encode('latin-1')


def plain_answer(status, headers, body):
    empty = status in (204, 304)
    return head_bytes('HTTP/1.1 %d %s' % (status, proxy_faults.REASONS.get(status, '')),
                      headers + ([] if empty else [('Content-Length', str(len(body)))])) + (b'' if empty else body)


def client_gone(reader):
    return reader.at_eof() or reader.exception() is not None


async def until_gone(work, reader, over=lambda: False):
    """The result of `work`, or None once the client has hung up or `over` says so; nothing is read from the client meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=0.2)
            if not task.done() and (client_gone(reader) or over()):
                return None
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def copy(source, sink):
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    except ConnectionError:
        pass
    finally:
        sink.close()


async def main():
    state = sys.argv[1]
    with open(state + '/ports') as f:
        ports = {k: int(v) for k, v in (line.strip().split('=') for line in f)}
    proxy = Proxy(state, ports)
    for service in ('keystone', 'nova', 'neutron', 'ec2', 'kube'):
        await asyncio.start_server(lambda r, w, s=service: proxy.serve(s, r, w), '127.0.0.1', ports['PROXY_%s_PORT' % service.upper()], limit=1 << 20, backlog=512)
    control = await asyncio.start_server(proxy.control, '127.0.0.1', ports['PROXY_CONTROL_PORT'])
    await control.serve_forever()


if __name__ == '__main__':
    asyncio.run(main())
