"""What the fault proxy does to requests for EC2 (and Auto Scaling, STS) while a fault is armed. See proxy_faults.py.

An EC2 request is a form: its Action says what it is. Answers are XML; those that are changed are parsed and written again, those
that are made up have the words of the real service. moto, which answers here, checks no signature, so that a form may be changed.
"""
import calendar
import time
import urllib.parse
import xml.etree.ElementTree as tree

EC2 = 'http://ec2.amazonaws.com/doc/2016-11-15/'
XML = ('Content-Type', 'text/xml;charset=UTF-8')
READS = ('Describe', 'Get', 'List')

# name: (arguments with defaults, what a client sees)
CATALOGUE = {
    'ec2-throttle': ({'count': None}, 'EC2 answers RequestLimitExceeded [COUNT times]'),
    'ec2-500': ({'count': None}, 'EC2 answers InternalError [COUNT times]'),
    'ec2-slow': ({'ms': 1000}, 'EC2 answers MS milliseconds late'),
    'ec2-write-slow': ({'ms': 1000, 'count': None}, 'writes reach EC2 MS milliseconds late [COUNT times], and not at all if the client hangs up before'),
    'ec2-write-lost': ({'count': None}, 'writes are answered as if they were done and never reach EC2 [COUNT times]'),
    'ec2-write-throttle': ({'count': None}, 'EC2 answers RequestLimitExceeded to writes [COUNT times]'),
    'ec2-timeout-after-effect': ({'count': None}, 'writes reach EC2 and take effect; the answer never comes [COUNT times]'),
    'ec2-unknown-young': ({'seconds': 60}, 'EC2 does not know an instance before SECONDS after its launch: not in lists, InvalidInstanceID.NotFound by its id'),
    'ec2-pages': ({'perPage': 5}, 'every list comes in pages of PERPAGE (what may be smallest is 5)'),
    'ec2-page-fails': ({'perPage': 5}, 'lists come in pages of PERPAGE, and every page but the first is InternalError'),
    'ec2-empty-list': ({'byId': None}, 'DescribeInstances without ids answers that there are none [and with ids BYID: 404 or 503]'),
    'ec2-cut': ({'count': None}, 'DescribeInstances breaks off in the middle of the body [COUNT times]'),
    'ec2-clock': ({'seconds': 3600}, 'the clock of EC2 is SECONDS ahead: what is not signed within five minutes of it is RequestExpired'),
    'ec2-no-right': ({'count': None}, 'writes are UnauthorizedOperation [COUNT times]'),
    'ec2-spot-ended': ({}, 'what was terminated was ended by EC2 itself: Server.SpotInstanceTermination'),
    'ec2-check-impaired': ({}, 'the system status check of every instance that runs is impaired'),
}


def action(body):
    """What a request asks for, by its form; a request of another shape is called by its path."""
    return form(body).get('Action', '')


def form(body):
    try:
        return dict(urllib.parse.parse_qsl(body.decode('ascii'), keep_blank_values=True))
    except UnicodeDecodeError:
        return {}


def is_write(body):
    named = action(body)
    return bool(named) and not named.startswith(READS)


async def before(faults, q, ask):
    """None (forward it) or (status, headers, body)."""
    asked = form(q.body)
    named = asked.get('Action', '')
    if faults.hit(q, 'ec2-throttle'):
        return refused(503, 'RequestLimitExceeded', 'Request limit exceeded.')
    if faults.hit(q, 'ec2-500'):
        return refused(500, 'InternalError', 'An internal error has occurred')
    ahead = faults.on.get('ec2-clock')
    if ahead and stale(q, ahead['seconds']):
        faults.hit(q, 'ec2-clock')
        status, headers, body = refused(400, 'RequestExpired', 'Request has expired.')
        return status, headers + [('Date', time.strftime('%a, %d %b %Y %H:%M:%S GMT', time.gmtime(time.time() + ahead['seconds'])))], body
    if q.write and faults.hit(q, 'ec2-write-throttle'):
        return refused(503, 'RequestLimitExceeded', 'Request limit exceeded.')
    if q.write and faults.hit(q, 'ec2-write-lost'):
        return 200, [XML], ('<%sResponse xmlns="%s"><requestId>r</requestId><return>true</return></%sResponse>' % (named, EC2, named)).encode()
    if q.write and faults.hit(q, 'ec2-no-right'):
        return refused(403, 'UnauthorizedOperation', 'You are not authorized to perform this operation.')
    if named.startswith('Describe') and not named.startswith('DescribeAutoScaling'):
        paged = faults.on.get('ec2-page-fails') or faults.on.get('ec2-pages')
        if 'ec2-page-fails' in faults.on and 'NextToken' in asked:
            faults.hit(q, 'ec2-page-fails')
            return refused(500, 'InternalError', 'An internal error has occurred')
        if paged and 'InstanceId.1' not in asked:
            asked['MaxResults'] = str(max(5, paged['perPage']))
            q.body = urllib.parse.urlencode(asked).encode()
            q.headers = [(k, str(len(q.body)) if k.lower() == 'content-length' else v) for k, v in q.headers]
    if named == 'DescribeInstances':
        return await instances(faults, q, ask, asked)
    whose = named == 'DescribeInstanceStatus' and faults.hit(q, 'ec2-check-impaired')
    if whose:
        status, headers, body = await ask(q)
        return status, headers, impaired(body, whose['about'])
    return None


async def instances(faults, q, ask, asked):
    by_id = [v for k, v in asked.items() if k.startswith('InstanceId.')]
    if not by_id and faults.hit(q, 'ec2-empty-list'):
        return 200, [XML], ('<DescribeInstancesResponse xmlns="%s"><requestId>r</requestId><reservationSet/></DescribeInstancesResponse>' % EC2).encode()
    empty = faults.on.get(faults.find(q, 'ec2-empty-list') or '')
    if by_id and empty and empty['byId']:
        faults.hit(q, 'ec2-empty-list')
        if empty['byId'] == 404:
            return refused(400, 'InvalidInstanceID.NotFound', "The instance ID '%s' does not exist" % by_id[0])
        return refused(503, 'Unavailable', 'The server is overloaded and can\'t handle the request.')
    young, ended = faults.on.get('ec2-unknown-young'), 'ec2-spot-ended' in faults.on
    if not young and not ended:
        return None
    status, headers, body = await ask(q)
    if status != 200:
        return status, headers, body
    if ended:
        faults.hit(q, 'ec2-spot-ended')
        body = body.replace(b'Client.UserInitiatedShutdown', b'Server.SpotInstanceTermination')
    if not young:
        return status, headers, body
    body, unknown = without_young(body, time.time() - young['seconds'])
    if unknown:
        faults.hit(q, 'ec2-unknown-young')
    missing = [i for i in by_id if i in unknown]
    if missing:
        return refused(400, 'InvalidInstanceID.NotFound', "The instance ID '%s' does not exist" % missing[0])
    return status, headers, body


def without_young(body, limit):
    """The answer without the instances that were launched after this time, and their ids."""
    top, name = parsed(body)
    unknown = set()
    for reservations in top.iter(name('reservationSet')):
        for reservation in list(reservations):
            listed = reservation.find(name('instancesSet'))
            for one in list(listed if listed is not None else []):
                launched = one.findtext(name('launchTime'), '')
                if since_epoch(launched) > limit:
                    unknown.add(one.findtext(name('instanceId'), ''))
                    listed.remove(one)
            if listed is not None and not len(listed):
                reservations.remove(reservation)
    return tree.tostring(top, encoding='utf-8', xml_declaration=True), unknown


def parsed(body):
    """The answer, and how its elements are called in its namespace, which it keeps when it is written again."""
    top = tree.fromstring(body)
    space = top.tag[1:].partition('}')[0]
    tree.register_namespace('', space)
    return top, lambda tag: '{%s}%s' % (space, tag)


def since_epoch(text):
    """Seconds of a time as EC2 writes it: 2026-11-22T20:40:24.000Z."""
    try:
        return calendar.timegm(time.strptime(text[:19], '%Y-%m-%dT%H:%M:%S'))
    except ValueError:
        return 0


def impaired(body, about):
    """The system status check of these instances has failed; of all when none is named."""
    top, name = parsed(body)
    for listed in top.iter(name('instanceStatusSet')):
        for one in listed:
            if about is not None and one.findtext(name('instanceId')) not in about:
                continue
            for checks in one.iter(name('systemStatus')):
                for field in checks.iter(name('status')):
                    field.text = {'ok': 'impaired', 'passed': 'failed'}.get(field.text, field.text)
    return tree.tostring(top, encoding='utf-8', xml_declaration=True)


def stale(q, ahead):
    """Whether a request was signed at a time that is not the time there."""
    signed = q.header('x-amz-date') or ''
    try:
        at = calendar.timegm(time.strptime(signed, '%Y%m%dT%H%M%SZ'))
    except ValueError:
        return False
    return abs(time.time() + ahead - at) > 300


def refused(status, code, message):
    body = ('<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors>'
            '<RequestID>00000000-0000-4000-8000-000000000000</RequestID></Response>' % (code, message))
    return status, [XML], body.encode()
