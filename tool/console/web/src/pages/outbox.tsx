// The outbox: partitions, messages by state, groups of failures, workers, generations.
import { useMemo } from 'preact/hooks';
import { ofGroup, ofList, ofPartition, ofPoison } from '../actions';
import { reading as path, typed } from '../api';
import { Chart } from '../chart';
import { bySubject, Line, Worst } from '../finding';
import { Acts, Refusals } from '../job';
import { EventLink, PartitionLink, StreamLink, orDash } from '../links';
import { useReading, type Reading } from '../live';
import { Clock, Command, Empty, Facts, Filters, Foreign, Mark, Pager, Read, Table, Tabs, Title } from '../parts';
import { address, choose, route } from '../route';
import { partitionState } from '../states';
import { Ago, duration, now, roughly } from '../time';
import { count, known, plural, rate, words } from '../text';
import type { Check, Finding, Group, Message, Minute, Outbox as Status, Partition, Worker } from '../types';

export function Outbox({ store, tab }: { store: string; tab: string }) {
  const status = useReading<Status>(path(store, ['outbox', 'status']), 2000);
  const check = useReading<Check>(path(store, ['check']), 5000);
  const findings = bySubject(check.data?.findings ?? []);
  const isPartition = !['', 'messages', 'groups', 'workers', 'generations'].includes(tab);
  if (isPartition) return <PartitionPage store={store} name={tab} status={status} findings={findings} />;
  return (
    <>
      <Title text="Outbox" reading={status} />
      <Read reading={status}>
        {(data) => (
          <>
            <Summary status={data} />
            <Tabs
              of="Outbox"
              tabs={[
                [['outbox'], 'Partitions', count(data.partitions.length)],
                [['outbox', 'messages'], 'Messages'],
                [['outbox', 'groups'], 'Groups'],
                [['outbox', 'workers'], 'Workers', count(data.workers.length)],
                [['outbox', 'generations'], 'Generations', count(data.generations.length)],
              ]}
            />
            {tab === '' && <Partitions status={data} findings={findings} />}
            {tab === 'messages' && <Messages store={store} />}
            {tab === 'groups' && <Groups store={store} />}
            {tab === 'workers' && <Workers workers={data.workers} findings={findings} />}
            {tab === 'generations' && <Generations status={data} />}
          </>
        )}
      </Read>
    </>
  );
}

function Summary({ status }: { status: Status }) {
  const amounts: [string, number, string][] = [
    ['pending', status.pending, status.pending_is_lower_bound ? '+' : ''],
    ['in flight', status.in_flight, ''],
    ['retrying', status.retrying, ''],
    ['parked', status.parked, ''],
    ['discarded', status.discarded, ''],
    ['published', status.published, ''],
  ];
  return (
    <>
      <p class="quiet">
        fence {status.fence} · {plural(status.partition_count, 'partition')} by <Foreign text={status.partitioner} />
        {status.leasing ? ' · leasing' : ' · no leasing'}
        {status.redeliveries > 0 && <> · {plural(status.redeliveries, 'redelivery', 'redeliveries')}</>}
      </p>
      <ul class="amounts">
        {amounts.map(([name, amount, more]) => (
          <li key={name}><a href={address(['outbox', 'messages'], { state: name.replace(' ', '_') })}>{name}</a> <b>{count(amount)}{more}</b></li>
        ))}
        <li>oldest pending <b>{status.lag_s === null ? 'none' : duration(status.lag_s)}</b></li>
      </ul>
    </>
  );
}

// ---- Partitions

function oldest(partition: Partition): string {
  const since = partition.waiting_since_at;
  return since === null ? '–' : roughly((now() - Date.parse(since)) / 1000);
}

function Partitions({ status, findings }: { status: Status; findings: Map<string, Finding> }) {
  const rows = status.partitions.map((partition) => ({ ...partition, shown: partitionState(partition, findings.get(partition.partition)) }));
  // Of many partitions, shows only those that deviate, so that rows don't come and go with each message.
  const isWhole = route.value.query.has('all') || rows.length <= 40;
  const deviating = rows.filter((row) => row.shown.severity !== 'ok');
  const shown = isWhole ? rows : deviating.length > 0 ? deviating : rows.slice(0, 40);
  return (
    <>
      <Table
        caption="Partitions" rows={shown} id={(row) => row.partition} mark={(row) => row.shown.severity}
        columns={[
          { head: 'Partition', names: true, cell: (row) => <PartitionLink of={row.partition} /> },
          { head: 'State', cell: (row) => (
            <><Mark severity={row.shown.severity}>{row.shown.word}</Mark> <Acts of={ofPartition(row)} isBrief /></>
          ) },
          { head: 'Pending', number: true, cell: (row) => known(row.pending, row.pending_is_lower_bound) },
          { head: 'Oldest', number: true, cell: oldest },
          { head: 'In flight', number: true, cell: (row) => count(row.in_flight) },
          { head: 'Parked', number: true, cell: (row) => count(row.parked) },
          { head: 'Owner', cell: (row) => orDash(row.owner) },
          { head: 'Lease', number: true, cell: (row) => (row.lease_left_s === null ? '–' : duration(row.lease_left_s)) },
          { head: 'Epoch', number: true, cell: (row) => count(row.epoch) },
          { head: 'Published', number: true, cell: (row) => count(row.published) },
          { head: 'Through', number: true, cell: (row) => (row.published_through === 0 ? '–' : <EventLink of={row.published_through} />) },
          { head: 'Broker', number: true, cell: (row) => count(row.broker_sequence) },
        ]}
      />
      <p><Refusals of={deviating.flatMap(ofPartition)} /></p>
      {!isWhole && (
        <p class="pager">
          <span>{count(rows.length - shown.length)} more, of which nothing is to be said</span>
          <button type="button" onClick={() => choose({ all: '1' })}>Show all</button>
        </p>
      )}
    </>
  );
}

interface OfPartition {
  store: string;
  name: string;
  status: Reading<Status>;
  findings: Map<string, Finding>;
}

function PartitionPage({ store, name, status, findings }: OfPartition) {
  const why = useReading<Finding[]>(path(store, ['why', name]), 5000);
  const messages = useReading<Message[]>(path(store, ['outbox', 'list'], { partition: name, limit: 50 }));
  const hour = useReading<Minute[]>(path(store, ['outbox', 'history'], { partition: name, since: '1h' }), 60_000);
  const partition = status.data?.partitions.find((each) => each.partition === name);
  const state = partition && partitionState(partition, findings.get(name));
  return (
    <>
      <Title text={`Partition ${name}`} reading={status} />
      <Read reading={why}>{(chain) => (chain[0] ? <Worst finding={chain[0]} causes={chain.slice(1)} /> : null)}</Read>
      {partition && <Acts of={[...ofPoison(why.data ?? []), ...ofPartition(partition)]} />}
      <Read reading={status}>
        {() =>
          partition === undefined ? <Empty>There is no partition of this name.</Empty> : (
            <Facts
              facts={[
                ['State', <Mark severity={state!.severity}>{state!.word}</Mark>],
                ['Pending', known(partition.pending, partition.pending_is_lower_bound)],
                ['Oldest pending', partition.oldest === null ? 'none' : <><EventLink of={partition.oldest} />, {oldest(partition)}</>],
                ['In flight', <>{count(partition.in_flight)}{partition.flight_age_s !== null && `, for ${duration(partition.flight_age_s)}`}</>],
                ['Retrying', count(partition.retrying)],
                ['Redeliveries', count(partition.redeliveries)],
                ['Parked', count(partition.parked)],
                ['Discarded', count(partition.discarded)],
                ['Published', count(partition.published)],
                ['Published through', partition.published_through === 0 ? '–' : <EventLink of={partition.published_through} />],
                ['Sequence at the broker', count(partition.broker_sequence)],
                ['Owner', partition.owner === null ? 'none' : <Foreign text={partition.owner} />],
                ['Lease', partition.lease_left_s === null ? '–' : `${duration(partition.lease_left_s)} left`],
                ['Epoch', count(partition.epoch)],
                ['Next try', <Ago at={partition.next_attempt_at} />],
                ['Last error', partition.error === null ? 'none' : <Foreign text={partition.error} />],
              ]}
            />
          )
        }
      </Read>
      <h2>Published</h2>
      <Read reading={hour}>{(rows) => <PublishedCurve rows={rows} />}</Read>
      <h2>Pending and parked</h2>
      <Read reading={messages}>{(rows) => <MessageRows rows={rows} none="Nothing of this partition is pending or parked." />}</Read>
      <Pager reading={messages} shown={messages.data?.length ?? 0} />
    </>
  );
}

/** From the log of batches: a minute without a batch is zero here. */
function PublishedCurve({ rows }: { rows: Minute[] }) {
  const curves = useMemo(() => [{ name: 'published', values: rows.map((row) => row.published_per_second), show: (value: number) => `${rate(value)} /s` }], [rows]);
  return <Chart title="The last hour" times={rows.map((row) => row.at)} step_s={60} curves={curves} marks={[]} complete={rows.length - 1} />;
}

// ---- Messages

const filters = ['state', 'partition', 'stream', 'type', 'error', 'group', 'since', 'until', 'after', 'newest-first'];
const states = ['pending', 'in_flight', 'retrying', 'parked', 'discarded', 'published'];

function Messages({ store }: { store: string }) {
  const { query } = route.value;
  const options = Object.fromEntries(filters.map((name) => [name, query.get(name)]));
  const messages = useReading<Message[]>(path(store, ['outbox', 'list'], { ...options, limit: 100 }));
  return (
    <>
      <Filters
        fields={[
          { name: 'state', label: 'State', options: [['', 'pending and parked'], ...states.map((state): [string, string] => [state, words(state)])] },
          { name: 'partition', label: 'Partition', hint: 'p03' },
          { name: 'stream', label: 'Stream' },
          { name: 'type', label: 'Type' },
          { name: 'error', label: 'Error contains', isOfPayloads: true },
          { name: 'group', label: 'Group', hint: 'see Groups' },
          { name: 'since', label: 'Since', hint: '15m' },
          { name: 'newest-first', label: 'Order', options: [['', 'oldest first'], ['1', 'newest first']] },
        ]}
      />
      <Read reading={messages}>{(rows) => (
        <><Acts of={rows.length === 0 ? [] : ofList(options)} /><MessageRows rows={rows} none="No message is like that, as far as was looked." /></>
      )}</Read>
      <Pager reading={messages} shown={messages.data?.length ?? 0} />
    </>
  );
}

export function messageSeverity(state: string): 'ok' | 'warning' {
  return state === 'parked' || state === 'retrying' ? 'warning' : 'ok';
}

function MessageRows({ rows, none }: { rows: Message[]; none: string }) {
  if (rows.length === 0) return <Empty>{none}</Empty>;
  return (
    <Table
      caption="Messages" rows={rows} id={(row) => row.sequence}
      columns={[
        { head: 'Sequence', names: true, cell: (row) => <EventLink of={row.sequence} /> },
        { head: 'State', cell: (row) => (
          <Mark severity={messageSeverity(row.state)}>{words(row.state)}{row.reason === 'behind' && ', after another'}</Mark>
        ) },
        { head: 'Partition', cell: (row) => <PartitionLink of={row.partition} /> },
        { head: 'Stream', long: true, cell: (row) => <StreamLink of={row.stream} /> },
        { head: 'Type', long: true, cell: (row) => <Foreign text={row.type} /> },
        { head: 'Recorded', cell: (row) => <Clock at={row.recorded_at} /> },
        { head: 'Tries', number: true, cell: (row) => count(row.attempts) },
        { head: 'Error', long: true, cell: (row) => orDash(row.error) },
      ]}
    />
  );
}

// ---- Groups of failures

function Groups({ store }: { store: string }) {
  const groups = useReading<Group[]>(path(store, ['outbox', 'groups']), 5000);
  return (
    <Read reading={groups}>
      {(rows) =>
        rows.length === 0 ? <Empty>No message is parked.</Empty> : (
          <><p><Refusals of={rows.flatMap((group) => ofGroup(group.group))} /></p><ul class="groups">
            {rows.map((group) => (
              <li key={group.group}>
                <p>
                  <Mark severity="warning">{words(group.reason)}</Mark> · <Foreign text={group.type} /> · {plural(group.streams, 'stream')}
                  {group.failure_class !== null && <> · {words(group.failure_class)}</>}
                </p>
                {group.error !== null && <p class="error"><Foreign text={group.error} /></p>}
                <p class="quiet">
                  first <Ago at={group.first_at} />, last <Ago at={group.last_at} /> · sample <EventLink of={group.sample} /> ·{' '}
                  <a href={address(['outbox', 'messages'], { group: group.group })}>the first of each stream</a>
                </p>
                <Acts of={ofGroup(group.group)} isBrief />
              </li>
            ))}
          </ul></>
        )
      }
    </Read>
  );
}

// ---- Workers and generations

function Workers({ workers, findings }: { workers: Worker[]; findings: Map<string, Finding> }) {
  if (workers.length === 0) return <Empty>No worker has run yet: <Command line={typed('outbox work')} /></Empty>;
  return (
    <>
      <Table
        caption="Workers" rows={workers} id={(row) => row.worker}
        columns={[
          { head: 'Worker', names: true, long: true, cell: (row) => <Foreign text={row.worker} /> },
          { head: 'State', cell: (row) => (
            <Mark severity={row.is_alive ? (findings.get(row.worker)?.severity ?? 'ok') : 'unknown'}>
              {!row.is_alive ? 'silent' : row.is_cut_off ? 'cut off' : 'alive'}
            </Mark>
          ) },
          { head: 'Host', cell: (row) => <Foreign text={row.host} /> },
          { head: 'Process', number: true, cell: (row) => String(row.pid) },
          { head: 'Partitions', number: true, cell: (row) => count(row.partitions) },
          { head: 'Started', cell: (row) => <Ago at={row.started_at} /> },
          { head: 'Heartbeat until', cell: (row) => <Ago at={row.heartbeat_until_at} /> },
          { head: 'Broker', cell: (row) => words(row.broker) },
          { head: 'Error', long: true, cell: (row) => orDash(row.broker_error) },
        ]}
      />
      <ul class="others">
        {workers.flatMap((row) => findings.get(row.worker) ?? []).map((finding) => <Line key={finding.subject} finding={finding} />)}
      </ul>
    </>
  );
}

function Generations({ status }: { status: Status }) {
  return (
    <Table
      caption="Generations" rows={status.generations} id={(row) => row.generation}
      columns={[
        { head: 'Generation', names: true, cell: (row) => count(row.generation) },
        { head: 'Partitions', number: true, cell: (row) => count(row.partition_count) },
        { head: 'From event', number: true, cell: (row) => count(row.first_sequence) },
        { head: 'State', cell: (row) => (row === status.generations.at(-1) ? 'current' : row.is_drained ? 'drained' : 'drains') },
      ]}
    />
  );
}

