// Links to objects that the pages name, and a dash for missing values.
import type { ComponentChildren } from 'preact';
import { Code, Foreign } from './parts';
import { address, toCorrelation, toEvent, toFollower, toPartition } from './route';
import { count } from './text';

/** Text of the database, or a dash for none. */
export function orDash(text: string | null | undefined): ComponentChildren {
  return text === null || text === undefined ? '–' : <Foreign text={text} />;
}

export function EventLink({ of }: { of: number }) {
  return <a href={toEvent(of)}>{count(of)}</a>;
}

/** An event by its id, as another event names its cause. */
export function CauseLink({ id }: { id: string | null }) {
  return id === null ? <>–</> : <a href={address(['e', id])}><Code text={id} /></a>;
}

export function StreamLink({ of, at }: { of: string; at?: number }) {
  return <a href={address(['stream', of], { at })}><Foreign text={of} /></a>;
}

export function PartitionLink({ of }: { of: string | null }) {
  return of === null ? <>–</> : <a href={toPartition(of)}>{of}</a>;
}

export function FollowerLink({ of }: { of: string }) {
  return <a href={toFollower(of)}><Foreign text={of} /></a>;
}

export function CorrelationLink({ id }: { id: string | null }) {
  return id === null ? <>–</> : <a href={toCorrelation(id)}><Code text={id} /></a>;
}
