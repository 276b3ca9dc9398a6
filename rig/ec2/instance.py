"""Instances of the rig's EC2, and Kubernetes nodes for them.

    instance.py seed                             the network, once
    instance.py create NAME... [--pool P] [--cluster C] [--group AUTOSCALING] [--spot] [--no-tags] [--no-role] [--json]
    instance.py node NAME... [--not-ready] [--no-route] [--boot-id ID]
                                                 each one's node: private DNS name, providerID, address; kwok keeps it Ready
    instance.py list [--json] | terminate NAME... | stop NAME... | start NAME...
    instance.py ungroup NAME...                  the nodes' group off its interface
    instance.py check NAME on|off                the source/destination check of its interface

Talks to moto's own port, so armed proxy faults do not get in its way. An instance is named by its Name tag, its id or its private DNS
name; addresses count up from 10.9.0.4, so that a node's name stays short. It waits for nothing: moto does everything at once.
"""
import argparse
import concurrent.futures
import fcntl
import json
import os
import sys

import boto3
from botocore.exceptions import ClientError

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + '/lib')
from machine import Trouble, simulated_node  # noqa: E402  (the path has to be there first)

STATE = os.environ['RIG_STATE']
CLUSTER = 'kubernetes.io/cluster/'
AT_ONCE = 4                     # nodes that are made side by side
IMAGE = 'ami-12c6146b'          # one that moto brings along


def client(service='ec2'):
    return boto3.client(service, region_name=os.environ['AWS_REGION'], endpoint_url='http://127.0.0.1:%s' % os.environ['EC2_PORT'])


def facts():
    with open(STATE + '/ec2.json') as f:
        return json.load(f)


def seed(_):
    ec2, iam = client(), client('iam')
    vpc = ec2.create_vpc(CidrBlock='10.9.0.0/16')['Vpc']['VpcId']
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={'Value': True})
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock='10.9.0.0/24', AvailabilityZone='us-east-1a')['Subnet']['SubnetId']
    group = ec2.create_security_group(GroupName='k8s-nodes', Description='nodes of the rig', VpcId=vpc)['GroupId']
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[
        {'IpProtocol': '-1', 'UserIdGroupPairs': [{'GroupId': group}]},
        {'IpProtocol': '-1', 'IpRanges': [{'CidrIp': '198.19.0.0/16', 'Description': 'pods'}]}])
    table = ec2.describe_route_tables(Filters=[{'Name': 'vpc-id', 'Values': [vpc]}])['RouteTables'][0]['RouteTableId']
    ec2.create_tags(Resources=[vpc, subnet, group, table], Tags=[{'Key': CLUSTER + 'rig', 'Value': 'owned'}])
    own = ec2.describe_security_groups(Filters=[{'Name': 'vpc-id', 'Values': [vpc]}, {'Name': 'group-name', 'Values': ['default']}])['SecurityGroups'][0]['GroupId']
    iam.create_role(RoleName='nodes', AssumeRolePolicyDocument='{}')
    iam.create_instance_profile(InstanceProfileName='nodes')
    iam.add_role_to_instance_profile(InstanceProfileName='nodes', RoleName='nodes')
    with open(STATE + '/ec2.json', 'w') as f:
        json.dump({'region': 'us-east-1', 'zone': 'us-east-1a', 'vpc': vpc, 'subnet': subnet, 'securityGroup': group, 'defaultGroup': own, 'routeTable': table,
                   'cluster': 'rig'}, f)


def described(ec2=None):
    found = []
    for page in (ec2 or client()).get_paginator('describe_instances').paginate():
        for reservation in page['Reservations']:
            found += reservation['Instances']
    ours = facts()['vpc']
    return [i for i in found if i.get('VpcId') in (ours, None)]


def tag(instance, key):
    return next((t['Value'] for t in instance.get('Tags', []) if t['Key'] == key), None)


def one(called):
    fits = [i for i in described() if called in (i['InstanceId'], tag(i, 'Name'), i.get('PrivateDnsName'))]
    alive = [i for i in fits if i['State']['Name'] not in ('terminated', 'shutting-down')] or fits
    if len(alive) != 1:
        raise Trouble('%d instances are called "%s". Those there are: rig instance list' % (len(alive), called))
    return alive[0]


def create(a):
    # Free addresses are counted: one at a time.
    with open(STATE + '/ec2.lock', 'w') as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        made = launch(a)
    table([i for i in described() if i['InstanceId'] in made], a.json)


def launch(a):
    ec2, network, made = client(), facts(), []
    taken = {i.get('PrivateIpAddress') for i in described(ec2)}
    free = (address for address in ('10.9.0.%d' % n for n in range(4, 250)) if address not in taken)
    marks = [] if a.no_tags else [{'Key': CLUSTER + a.cluster, 'Value': 'owned'}, {'Key': 'k8s-pool', 'Value': a.pool}]
    if a.group:
        autoscaling(a.group, network, len(a.names), marks, {} if a.no_role else {'IamInstanceProfile': 'nodes'})
    for name in a.names:
        tags = [{'Key': 'Name', 'Value': name}] + marks
        wanted = dict(ImageId=IMAGE, MinCount=1, MaxCount=1, InstanceType='t3.large', Placement={'AvailabilityZone': network['zone']},
                      NetworkInterfaces=[{'DeviceIndex': 0, 'SubnetId': network['subnet'], 'Groups': [network['securityGroup']],
                                          'PrivateIpAddress': next(free)}],
                      TagSpecifications=[{'ResourceType': 'instance', 'Tags': tags}])
        if not a.no_role:
            wanted['IamInstanceProfile'] = {'Name': 'nodes'}
        if a.spot:
            wanted['InstanceMarketOptions'] = {'MarketType': 'spot'}
        made.append(ec2.run_instances(**wanted)['Instances'][0]['InstanceId'])
    if a.group:
        client('autoscaling').attach_instances(InstanceIds=made, AutoScalingGroupName=a.group)
    return made


def autoscaling(group, network, count, marks, role):
    """A group that launches what those have that are attached to it: the same network, group, role and tags, but for the name."""
    scaling = client('autoscaling')
    if scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[group])['AutoScalingGroups']:
        return
    scaling.create_launch_configuration(LaunchConfigurationName=group, ImageId=IMAGE, InstanceType='t3.large',
                                        SecurityGroups=[network['securityGroup']], **role)
    tags = [dict(mark, PropagateAtLaunch=True, ResourceId=group, ResourceType='auto-scaling-group') for mark in marks]
    scaling.create_auto_scaling_group(AutoScalingGroupName=group, LaunchConfigurationName=group, MinSize=0, MaxSize=count + 10,
                                      DesiredCapacity=0, VPCZoneIdentifier=network['subnet'], Tags=tags)


def table(instances, as_json):
    rows = [{'name': tag(i, 'Name') or '', 'id': i['InstanceId'], 'state': i['State']['Name'], 'status': i['State']['Name'], 'address': i.get('PrivateIpAddress'),
             'node': i.get('PrivateDnsName'), 'zone': i['Placement']['AvailabilityZone'], 'pool': tag(i, 'k8s-pool'),
             'interface': next((n['NetworkInterfaceId'] for n in i.get('NetworkInterfaces', [])), None),
             'groups': sorted(g['GroupId'] for n in i.get('NetworkInterfaces', [])[:1] for g in n['Groups']),
             'autoscaling': tag(i, 'aws:autoscaling:groupName')} for i in instances]
    if as_json:
        return print(json.dumps(rows))
    print('%-16s %-20s %-14s %-12s %s' % ('NAME', 'ID', 'STATE', 'ADDRESS', 'NODE'))
    for r in rows:
        print('%-16s %-20s %-14s %-12s %s' % (r['name'], r['id'], r['state'], r['address'] or '-', r['node'] or '-'))


def node(a):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as several:
        for told in several.map(lambda called: node_of(a, called), a.names):
            print(told)


def node_of(a, called):
    i = one(called)
    name, identity = i['PrivateDnsName'], i['InstanceId'].removeprefix('i-')
    provider = 'aws:///%s/%s' % (i['Placement']['AvailabilityZone'], i['InstanceId'])
    # A guest of EC2 has a system UUID that begins so, and is not the instance's id.
    uuid = 'ec2%s-%s-4%s-8%s-%s' % (identity[:5], identity[:4], identity[:3], identity[:3], identity[:12])
    made = simulated_node(name, uuid, i['PrivateIpAddress'], {'providerID': provider}, a.not_ready, a.boot_id)
    pods = made['spec']['podCIDR']
    if not a.no_route:
        client().create_route(RouteTableId=facts()['routeTable'], DestinationCidrBlock=pods,
                              NetworkInterfaceId=i['NetworkInterfaces'][0]['NetworkInterfaceId'])
    return 'node %s  %s  %s  pods %s' % (name, provider, i['PrivateIpAddress'], pods)


def change(call, **more):
    def act(a):
        for called in a.names:
            getattr(client(), call)(InstanceIds=[one(called)['InstanceId']], **more)
    return act


def check(a):
    interface = one(a.name)['NetworkInterfaces'][0]['NetworkInterfaceId']
    client().modify_network_interface_attribute(NetworkInterfaceId=interface, SourceDestCheck={'Value': a.word == 'on'})


def ungroup(a):
    """The nodes' group off the first interface; EC2 wants one on it, so it gets the VPC's own."""
    for called in a.names:
        interface = one(called)['NetworkInterfaces'][0]['NetworkInterfaceId']
        client().modify_network_interface_attribute(NetworkInterfaceId=interface, Groups=[facts()['defaultGroup']])


def main():
    p = argparse.ArgumentParser(prog='rig instance')
    verbs = p.add_subparsers(required=True)
    verbs.add_parser('seed').set_defaults(act=seed)
    c = verbs.add_parser('create')
    c.add_argument('names', nargs='+')
    c.add_argument('--pool', default='workers')
    c.add_argument('--cluster', default='rig')
    c.add_argument('--group')
    for flag in ('--spot', '--no-tags', '--no-role', '--json'):
        c.add_argument(flag, action='store_true')
    c.set_defaults(act=create)
    n = verbs.add_parser('node')
    n.add_argument('names', nargs='+')
    n.add_argument('--not-ready', action='store_true')
    n.add_argument('--no-route', action='store_true')
    n.add_argument('--boot-id')
    n.set_defaults(act=node)
    li = verbs.add_parser('list')
    li.add_argument('--json', action='store_true')
    li.set_defaults(act=lambda a: table(described(), a.json))
    for word in ('terminate', 'stop', 'start'):
        w = verbs.add_parser(word)
        w.add_argument('names', nargs='+')
        w.set_defaults(act=change(word + '_instances'))
    u = verbs.add_parser('ungroup')
    u.add_argument('names', nargs='+')
    u.set_defaults(act=ungroup)
    ch = verbs.add_parser('check')
    ch.add_argument('name')
    ch.add_argument('word', choices=('on', 'off'))
    ch.set_defaults(act=check)
    a = p.parse_args()
    try:
        a.act(a)
    except (Trouble, ClientError, OSError) as trouble:
        sys.exit('rig: %s' % trouble)


main()
