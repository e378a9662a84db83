// An event: its message, its contents, its cause and its effects.
import type { VNode } from 'preact';
import { ofMessage, ofPoison, type Action } from '../actions';
import { reading as path, typed } from '../api';
import { Worst } from '../finding';
import { Acts } from '../job';
import { CauseLink, CorrelationLink, EventLink, FollowerLink, PartitionLink, StreamLink, orDash } from '../links';
import { useReading } from '../live';
import { Code, Command, Empty, Facts, Foreign, Mark, Read, Table, Title } from '../parts';
import { address, toEvent } from '../route';
import { Ago, Clock, duration, exact } from '../time';
import { count, plural, words } from '../text';
import type { Finding, Message, Projector, StoredEvent, Twig } from '../types';
import { messageSeverity } from './outbox';
import { actorOf, Payload } from '../payload';

export function EventPage({ store, event }: { store: string; event: string }) {
  const shown = useReading<StoredEvent>(path(store, ['events', 'show', event]));
  const sequence = shown.data?.sequence;
  return (
    <>
      <Title text={`Event ${event}`} reading={shown}>
        {sequence !== undefined && (
          <span class="steps">
            {sequence > 1 && <a href={toEvent(sequence - 1)}>‹ {count(sequence - 1)}</a>} <a href={toEvent(sequence + 1)}>{count(sequence + 1)} ›</a>
          </span>
        )}
      </Title>
      <Read reading={shown}>{(data) => <Shown store={store} event={data} />}</Read>
    </>
  );
}

function TagLink({ of }: { of: string }) {
  return <><a href={address(['events'], { tag: of })}><Foreign text={of} /></a> </>;
}

function Shown({ store, event }: { store: string; event: StoredEvent }) {
  const tree = useReading<Twig[]>(path(store, ['events', 'tree', String(event.sequence)]), 5000);
  return (
    <>
      <Publication store={store} event={event} twig={tree.data?.find((twig) => twig.is_asked)} />
      <section aria-labelledby="event">
        <h2 id="event"><Foreign text={event.type} /> <span class="quiet">v{event.schema_version}</span></h2>
        <Facts
          facts={[
            ['Stream', <><StreamLink of={event.stream} at={event.stream_version} />, version {count(event.stream_version)}</>],
            ['Recorded', <>{exact(event.recorded_at)} (<Ago at={event.recorded_at} />)</>],
            ['Id', <Code text={event.id} />],
            ['By', orDash(actorOf(event))],
            ['Correlation', <CorrelationLink id={event.correlation_id} />],
            ['Caused by', <CauseLink id={event.causation_id} />],
            ['Tags', event.tags.length === 0 ? '–' : event.tags.map((tag) => <TagLink key={tag} of={tag} />)],
          ]}
        />
        <Payload event={event} />
      </section>
      <section aria-labelledby="tree">
        <h2 id="tree">Cause and effects</h2>
        <Read reading={tree}>
          {(twigs) => (twigs.length > 1 ? <Tree twigs={twigs} /> : <p class="quiet">Nothing caused it, and it has caused nothing yet.</p>)}
        </Read>
      </section>
      <Handled store={store} sequence={event.sequence} />
      <p class="commands"><Command line={typed(`events show ${event.sequence}`)} /> <Command line={typed(`why ${event.sequence}`)} /></p>
    </>
  );
}

// ---- Publication

function Publication({ store, event, twig }: { store: string; event: StoredEvent; twig: Twig | undefined }) {
  const why = useReading<Finding[]>(path(store, ['why', String(event.sequence)]), 2000);
  const isMessage = twig !== undefined && !['local', 'not in the outbox'].includes(twig.state);
  const message = useReading<Message>(isMessage ? path(store, ['outbox', 'show', String(event.sequence)]) : null, 2000);
  return (
    <section aria-labelledby="publication" class="boxed">
      <h2 id="publication">Publication</h2>
      {why.problem?.status === 404 ? <Empty>This store has no outbox.</Empty> : (
        <Read reading={why}>{(chain) => (chain[0] ? <Worst finding={chain[0]} causes={chain.slice(1)} /> : null)}</Read>
      )}
      {isMessage && <Read reading={message}>{(found) => <MessageFacts message={found} acts={[...ofPoison(why.data ?? [], found.sequence), ...ofMessage(found)]} />}</Read>}
    </section>
  );
}

/** A batch has a first and a last sequence. */
function placeOf({ broker_from: from, broker_to: to }: Message): string {
  if (from === null) return '';
  return to === null || from === to ? `#${count(from)}` : `between #${count(from)} and #${count(to)}`;
}

function MessageFacts({ message, acts }: { message: Message; acts: Action[] }) {
  const took = message.since_at === null ? null : (Date.parse(message.since_at) - Date.parse(message.recorded_at)) / 1000;
  const isPublished = message.state === 'published';
  return (
    <>
      <ol class="life">
        <li>committed <Clock at={message.recorded_at} /></li>
        <li>
          <Mark severity={messageSeverity(message.state)}>{words(message.state)}</Mark>
          {message.since_at !== null && <> <Clock at={message.since_at} /></>}
          {took !== null && took >= 0 && ` (+${duration(took)})`}
        </li>
        {isPublished && message.broker_from !== null && <li>at the broker {placeOf(message)}</li>}
      </ol>
      <Facts
        facts={[
          ['Partition', <PartitionLink of={message.partition} />],
          ['Tries', count(message.attempts)],
          ...(message.reason === null ? [] : [['Reason', words(message.reason)] as [string, string]]),
          ...(message.failure_class === null ? [] : [['Kind of failure', words(message.failure_class)] as [string, string]]),
          ...(message.error === null ? [] : [['Last error', <Foreign text={message.error} />] as [string, VNode]]),
          ...(message.next_attempt_at === null ? [] : [['Next try', <Ago at={message.next_attempt_at} />] as [string, VNode]]),
          ...(message.redelivery === null ? [] : [['Redelivery', String(message.redelivery)] as [string, string]]),
        ]}
      />
      <Acts of={acts} />
    </>
  );
}

// ---- What caused it, what it led to, who is past it

export function Tree({ twigs }: { twigs: Twig[] }) {
  const least = Math.min(...twigs.map((twig) => twig.depth));
  return (
    <Table
      caption="Cause and effects" rows={twigs} id={(twig) => twig.sequence} mark={(twig) => (twig.is_asked ? 'here' : '')}
      columns={[
        { head: 'Event', names: true, cell: (twig) => (
          <span class={`depth d${Math.min(twig.depth - least, 12)}`}>
            {twig.is_asked ? <b aria-current="true">{count(twig.sequence)}</b> : <EventLink of={twig.sequence} />}
          </span>
        ) },
        { head: 'Type', long: true, cell: (twig) => <Foreign text={twig.type} /> },
        { head: 'Stream', long: true, cell: (twig) => <StreamLink of={twig.stream} /> },
        { head: 'Recorded', cell: (twig) => <Clock at={twig.recorded_at} /> },
        { head: 'Message', cell: (twig) => <TwigState twig={twig} /> },
      ]}
    />
  );
}

function TwigState({ twig }: { twig: Twig }) {
  return (
    <>
      <Mark severity={messageSeverity(twig.state)}>{words(twig.state)}</Mark>
      {twig.partition !== null && <> <PartitionLink of={twig.partition} /></>}
      {twig.broker_sequence !== null && <> #{count(twig.broker_sequence)}</>}
    </>
  );
}

function Handled({ store, sequence }: { store: string; sequence: number }) {
  const followers = useReading<Projector[]>(path(store, ['projections', 'status']), 5000);
  return (
    <section aria-labelledby="handled">
      <h2 id="handled">Followers</h2>
      <Read reading={followers}>
        {(rows) => {
          const living = rows.filter((row) => row.state === 'living');
          const before = living.filter((row) => row.position < sequence);
          if (living.length === 0) return <p class="quiet">This store has none.</p>;
          return (
            <p>
              {`${count(living.length - before.length)} of ${plural(living.length, 'follower')} are past it.`}
              {before.length > 0 && ' Not yet: '}
              {before.map((row, index) => (
                <span key={row.projector}>{index > 0 && ', '}<FollowerLink of={row.projector} /> (at {count(row.position)})</span>
              ))}
            </p>
          );
        }}
      </Read>
    </section>
  );
}
