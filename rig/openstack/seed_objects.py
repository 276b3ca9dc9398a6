"""Objects that every rig starts with, made once through the APIs and kept in the seed snapshot.

    seed_objects.py identity    users, projects, roles, catalogue (keystone only)
    seed_objects.py cloud       flavors, image, external network; project demo's network, router, security group (all services up)

Writes $RIG_STATE/cloud.json: the ids and names that `rig`, its description and the tests use. Makes no servers.
"""
import json
import os
import sys
import uuid

from osapi import Session, demo

POD_RANGE = '198.19.0.0/16'
NODE_RANGE = '10.8.0.0/24'
# Below them lie addresses that no machine ever gets: dead next hops, as `rig fault` puts them into routes.
NODE_ADDRESSES = {'start': '10.8.0.16', 'end': '10.8.0.254'}


def identity():
    s = Session('admin', 'rigadmin', 'admin')
    def k(method, path, body=None): return s.ok('keystone', method, path, body)
    roles = {r['name']: r['id'] for r in k('GET', '/roles')['roles']}
    if 'service' not in roles:
        roles['service'] = k('POST', '/roles', {'role': {'name': 'service'}})['role']['id']

    def project(name):
        return k('POST', '/projects', {'project': {'name': name, 'domain_id': 'default'}})['project']['id']

    def user(name, password, project_id, *role_names):
        user_id = k('POST', '/users', {'user': {'name': name, 'password': password, 'domain_id': 'default',
                                                'default_project_id': project_id}})['user']['id']
        for r in role_names:
            k('PUT', '/projects/%s/users/%s/roles/%s' % (project_id, user_id, roles[r]))
    user('svc', 'rigsvc', project('service'), 'admin', 'service')
    demo_project = project('demo')
    user('demo', 'demo', demo_project, 'member')
    user('demo-reader', 'demo', demo_project, 'reader')
    user('other', 'other', project('other'), 'member')
    for name, kind, path in (('nova', 'compute', '/v2.1'), ('neutron', 'network', ''), ('placement', 'placement', ''), ('glance', 'image', '')):
        service_id = k('POST', '/services', {'service': {'name': name, 'type': kind}})['service']['id']
        for interface in ('public', 'internal', 'admin'):
            url = 'http://127.0.0.1:%s%s' % (os.environ[name.upper() + '_PORT'], path)
            k('POST', '/endpoints', {'endpoint': {'service_id': service_id, 'interface': interface, 'region_id': 'RegionOne', 'url': url}})


def pod_rules(group_id):
    """What a Kubernetes node's group must let in; `rig fault rule-off` takes these away and puts them back."""
    return [{'security_group_id': group_id, 'direction': 'ingress', 'ethertype': 'IPv4', 'protocol': p, 'remote_ip_prefix': POD_RANGE}
            for p in ('tcp', 'udp', 'icmp')]


def cloud():
    a = Session('admin', 'rigadmin', 'admin')
    for flavor_id, name, vcpus, ram in (('1', 'm1.tiny', 1, 64), ('2', 'm1.small', 2, 2048), ('99', 'm1.impossible', 2000000, 64)):
        a.nova('POST', '/flavors', {'flavor': {'id': flavor_id, 'name': name, 'vcpus': vcpus, 'ram': ram, 'disk': 1}})
    image = a.ok('glance', 'POST', '/images', {'name': 'fake', 'disk_format': 'raw', 'container_format': 'bare', 'visibility': 'public',
                                               'id': str(uuid.uuid5(uuid.NAMESPACE_DNS, 'fake.image'))})['id']
    a.ok('glance', 'PUT', '/images/%s/file' % image, b'\0' * 1024, headers={'Content-Type': 'application/octet-stream'})
    ext = a.neutron('POST', '/networks', {'network': {'name': 'ext', 'router:external': True, 'shared': False,
                                                      'provider:network_type': 'flat', 'provider:physical_network': 'ext'}})['network']['id']
    a.neutron('POST', '/subnets', {'subnet': {'network_id': ext, 'name': 'ext', 'cidr': '203.0.113.0/24', 'ip_version': 4, 'enable_dhcp': False}})

    d = demo()
    network = d.neutron('POST', '/networks', {'network': {'name': 'nodes'}})['network']['id']
    subnet = d.neutron('POST', '/subnets', {'subnet': {'name': 'nodes', 'network_id': network, 'cidr': NODE_RANGE, 'ip_version': 4,
                                                         'allocation_pools': [NODE_ADDRESSES]}})['subnet']['id']
    router = d.neutron('POST', '/routers', {'router': {'name': 'rig-router'}})['router']['id']
    d.neutron('PUT', '/routers/%s/add_router_interface' % router, {'subnet_id': subnet})
    d.neutron('PUT', '/routers/' + router, {'router': {'external_gateway_info': {'network_id': ext}}})
    group = d.neutron('POST', '/security-groups', {'security_group': {'name': 'k8s-nodes', 'description': 'nodes of the cluster rig'}})['security_group']['id']
    for rule in pod_rules(group):
        d.neutron('POST', '/security-group-rules', {'security_group_rule': rule})
    known = {'project': 'demo', 'projectID': d.project_id, 'user': 'demo', 'reader': 'demo-reader', 'network': network, 'networkName': 'nodes',
             'subnet': subnet, 'subnetCIDR': NODE_RANGE, 'router': router, 'routerName': 'rig-router', 'securityGroup': group,
             'securityGroupName': 'k8s-nodes', 'podCIDR': POD_RANGE, 'image': image, 'flavors': ['1', '2', '99'], 'externalNetwork': ext,
             'clusterTag': 'k8s-cluster=rig', 'poolTagPrefix': 'k8s-pool='}
    with open(os.environ['RIG_STATE'] + '/cloud.json', 'w') as f:
        json.dump(known, f, indent=2)


if __name__ == '__main__':
    {'identity': identity, 'cloud': cloud}[sys.argv[1]]()
