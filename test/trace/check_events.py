#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Checks a file of Chrome trace events, as the description of the format has them:
#   check_events.py FILE [WHAT=NUMBER]...
# Every event has what its phase asks for, slices of a thread nest, each flow begins within a slice
# and ends within another, later or as early. Prints how many there are of each kind; WHAT is a
# kind, or `arrows`, `processes`, `NAME` of a slice, and has to be there so often; WHAT>=NUMBER at
# least.
import collections
import json
import re
import sys

NEEDS = {'M': {'name', 'pid', 'tid', 'args'}, 'X': {'name', 'cat', 'pid', 'tid', 'ts', 'dur', 'args'},
         'i': {'name', 'cat', 'pid', 'tid', 'ts', 's'}, 's': {'name', 'cat', 'pid', 'tid', 'ts', 'id'},
         'f': {'name', 'cat', 'pid', 'tid', 'ts', 'id', 'bp'}}
METADATA = {'process_name': 'name', 'process_labels': 'labels', 'thread_name': 'name',
            'thread_sort_index': 'sort_index'}


def bad(event, text):
    raise SystemExit(f'FAILED: {text}: {json.dumps(event)}')


def check_one(event):
    if event.get('ph') not in NEEDS:
        bad(event, 'a phase that is not expected')
    missing = NEEDS[event['ph']] - event.keys()
    if missing:
        bad(event, f'without {missing}')
    for key in event.keys() & {'ts', 'dur'}:
        if not isinstance(event[key], (int, float)) or event[key] < 0:
            bad(event, f'{key} is no time')
    for key in ('pid', 'tid'):
        if not isinstance(event[key], int):
            bad(event, f'{key} is no number')
    if event['ph'] == 'M':
        wanted = METADATA.get(event['name'])
        if wanted is None or wanted not in event['args']:
            bad(event, 'metadata that is not expected')
    if event['ph'] == 'i' and event['s'] != 't':
        bad(event, 'an instant of no thread')


def main():
    with open(sys.argv[1], encoding='ascii') as file:
        whole = json.load(file)
    events = whole['traceEvents']
    counts = collections.Counter()
    rows = collections.defaultdict(list)
    named = set()
    flows = {}
    for event in events:
        check_one(event)
        row = (event['pid'], event['tid'])
        if event['ph'] == 'X':
            # In whole nanoseconds, so that sums are exact.
            begin = round(event['ts'] * 1000)
            rows[row].append((begin, begin + round(event['dur'] * 1000), event))
            counts[event['cat']] += 1
            counts[event['name']] += 1
            if event['cat'] == 'operation':
                counts[event['args']['status']] += 1
            if 'event' in event['args']:
                counts[event['args']['event']] += 1
        elif event['ph'] == 'i':
            counts[event['cat']] += 1
            counts[event['name']] += 1
        elif event['ph'] == 'M' and event['name'] == 'thread_name':
            named.add(row)
        elif event['ph'] == 'M' and event['name'] == 'process_name':
            counts['processes'] += 1
        elif event['ph'] in 'sf':
            flows.setdefault(event['id'], {})[event['ph']] = (row, round(event['ts'] * 1000), event)
    for row, slices in rows.items():
        if row not in named:
            bad(slices[0][2], 'a thread without a name')
        slices.sort(key=lambda s: (s[0], -s[1]))
        stack = []
        for begin, end, event in slices:
            while stack and stack[-1][1] <= begin:
                stack.pop()
            if stack and end > stack[-1][1]:
                bad(event, f'it overlaps {json.dumps(stack[-1][2])}')
            stack.append((begin, end, event))
    for number, flow in flows.items():
        if set(flow) != {'s', 'f'}:
            bad(list(flow.values())[0][2], 'a flow without its other end')
        for row, ts, event in flow.values():
            if not any(begin <= ts <= end for begin, end, _ in rows[row]):
                bad(event, 'a flow outside of any slice')
        counts['arrows'] += 1
        if flow['f'][1] < flow['s'][1]:
            counts['backward'] += 1
    print(dict(counts))
    for wanted in sys.argv[2:]:
        what, relation, number = re.fullmatch(r'(.*?)(>?=)(\d+)', wanted).groups()
        found = counts[what]
        if found < int(number) or (relation == '=' and found != int(number)):
            raise SystemExit(f'FAILED: {found} of {what}, not {relation} {number}')


main()
