"""A thin OpenStack client over plain HTTP, standard library only: every call is one request, as curl would send it.

Talks to the services' own ports, so the rig can look and mend whatever faults are armed; with `proxy` it takes the way clients
take, through the fault proxy. Ports come from the environment (KEYSTONE_PORT, NOVA_PORT, ...), which `rig` exports. No retries besides a stale connection, no
paging helpers beyond `all_servers`, no caching.
"""
import http.client
import json
import os
import time

PREFIX = {'keystone': '/v3', 'nova': '/v2.1', 'placement': '', 'neutron': '/v2.0', 'glance': '/v2'}


class Refused(Exception):
    """An API answered with an error; says which call, which status, and the API's own words."""


class Session:
    def __init__(self, user, password, project, proxy=False, timeout=60):
        self.connections, self.token, self.prefix, self.timeout = {}, None, 'PROXY_' if proxy else '', timeout
        r = self.call('keystone', 'POST', '/auth/tokens', {'auth': {
            'identity': {'methods': ['password'], 'password': {'user': {
                'name': user, 'domain': {'id': 'default'}, 'password': password}}},
            'scope': {'project': {'name': project, 'domain': {'id': 'default'}}}}})
        if r.status != 201:
            raise Refused('cannot get a token for %s in project %s: %s %s' % (user, project, r.status, r.body))
        self.token = r.headers['X-Subject-Token']
        self.project_id = r.body['token']['project']['id']
        self.user_id = r.body['token']['user']['id']

    def call(self, service, method, path, body=None, headers=None, microversion=None):
        h = {'Accept': 'application/json'}
        if self.token:
            h['X-Auth-Token'] = self.token
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body)
            h['Content-Type'] = 'application/json'
        if microversion:
            h['OpenStack-API-Version'] = 'compute ' + microversion
        h.update(headers or {})
        for last in (False, True):
            c = self.connections.get(service)
            if c is None:
                port = int(os.environ[self.prefix + service.upper() + '_PORT'])
                c = self.connections[service] = http.client.HTTPConnection('127.0.0.1', port, timeout=self.timeout)
            began = time.perf_counter()
            try:
                c.request(method, PREFIX[service] + path, body, h)
                r = c.getresponse()
                data = r.read()
                break
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                self.connections.pop(service).close()
                if last:
                    raise
            except OSError:
                self.connections.pop(service).close()
                raise
        r.seconds = time.perf_counter() - began
        try:
            r.body = json.loads(data) if data else None
        except ValueError:
            r.body = data.decode(errors='replace')
        return r

    def ok(self, service, method, path, *more, **keywords):
        r = self.call(service, method, path, *more, **keywords)
        if r.status >= 300:
            raise Refused('%s refused %s %s: %s %s' % (service, method, path, r.status, r.body))
        return r.body

    def nova(self, method, path, body=None, microversion='2.52'):
        return self.ok('nova', method, path, body, microversion=microversion)

    def neutron(self, method, path, body=None):
        return self.ok('neutron', method, path, body)


def demo():
    return Session('demo', 'demo', 'demo')


def admin():
    return Session('admin', 'rigadmin', 'admin')
