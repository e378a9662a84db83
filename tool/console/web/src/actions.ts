// The actions that a person may take: each is a command of the tool, with its words.
import type { Consumer, Finding, Message, Partition, Projector, Severity } from './types';

/** A value that the command needs and the person enters. */
export interface Blank {
  /** An option's name; empty for the last operand. */
  name: string;
  label: string;
  value: string;
}
export interface Action {
  command: string;
  operands: string[];
  options?: Record<string, string>;
  /** "Retry" "message 17": together they are the dialog's title, the first alone a button's. */
  verb: string;
  what: string;
  blanks?: Blank[];
  /** It can't be undone, so the person must type the store's name. */
  isFinal?: boolean;
}

/** The grant that it needs. */
export const needs = ({ command }: Action): 'operate' | 'admin' =>
  /^(outbox partitions (resume|adopt)|projections rebuild)$/.test(command) ? 'admin' : 'operate';

const plain = (command: string, verb: string, what: string, ...operands: string[]): Action => ({ command, verb, what, operands });
const final = (...of: Parameters<typeof plain>): Action => ({ ...plain(...of), isFinal: true });

// ---- The outbox

export const ofGroup = (group: string): Action[] => [
  { ...plain('outbox retry', 'Retry', `group ${group}`), options: { group } },
  { ...final('outbox discard', 'Discard', `group ${group}`), options: { group } },
];

const discard = (sequence: number): Action => final('outbox discard', 'Discard', `message ${sequence}`, String(sequence));

/** For a parked message, but not for one that only waits after it. */
export function ofMessage({ state, sequence, reason }: Message): Action[] {
  if (state !== 'parked' || reason === 'behind') return [];
  return [plain('outbox retry', 'Retry', `message ${sequence}`, String(sequence)), discard(sequence)];
}

/** For the message that stopped a partition, as the finding names it. */
export function ofPoison(findings: Finding[], only?: number): Action[] {
  const said = findings.find(({ code }) => code === 'partition_poison')?.sentence ?? '';
  const sequence = Number(/ event (\d+) /.exec(said)?.[1] ?? 0);
  return sequence > 0 && (only ?? sequence) === sequence ? [discard(sequence)] : [];
}

/** For the parked messages that a list's filters select, if the command has the same filters. */
export function ofList(filters: Record<string, string | null>): Action[] {
  const { state, partition, since, until, stream, type, error, group } = filters;
  if (group) return ofGroup(group);
  if (state !== 'parked' || partition || since || until || (stream && (type || error))) return [];
  const options = stream ? { stream } : type || error ? { ...(type && { type }), ...(error && { error }) } : { all: '' };
  const what = stream ? `all of ${stream}` : type || error ? 'streams by this filter' : 'all that are parked';
  return [{ ...plain('outbox retry', 'Retry', what), options }];
}

export function ofPartition({ partition, stopped, attempts }: Partition): Action[] {
  const name = `partition ${partition}`;
  if (stopped === null) return attempts === 0 ? [] : [plain('outbox partitions retry', 'Retry', `${name} now`, partition)];
  return [
    plain('outbox partitions resume', 'Resume', name, partition),
    ...(stopped === 'poison' ? [] : [final('outbox partitions adopt', 'Adopt', name, partition)]),
  ];
}

/** These take time, so they are jobs with progress. */
export const ofStore: Action[] = [
  plain('verify', 'Verify', 'all events'),
  { ...plain('outbox reconcile', 'Compare', 'what is published with the broker'), options: { 'against-broker': '' } },
];

// ---- Followers

export function ofProjector({ projector, state, stopped, failing }: Projector): Action[] {
  if (state === 'building') return [plain('projections cancel', 'Cancel', `the rebuild of ${projector}`, projector)];
  return [
    ...(stopped || failing !== null ? [plain('projections retry', 'Retry', projector, projector)] : []),
    ...(failing === null ? [] : [skip(projector, failing)]),
  ];
}

/** Only the application's own tool knows the projector. */
export const ofRebuild = (projector: string): Action => ({ ...plain('projections rebuild', 'Rebuild', projector), options: { projector } });

const skip = (projector: string, event: number): Action =>
  final('projections skip', 'Skip', `event ${event} in ${projector}`, projector, String(event));

export const ofParkedEvent = (projector: string, event: number): Action[] => [
  plain('projections retry', 'Retry', `event ${event} in ${projector}`, projector, String(event)),
  skip(projector, event),
];

export const ofConsumer = ({ consumer, state }: Consumer): Action[] => [
  state === 'paused' ? plain('inbox resume', 'Resume', consumer, consumer) : plain('inbox pause', 'Pause', consumer, consumer),
];

export const ofLetter = (number: number): Action[] => [
  plain('inbox retry', 'Retry', `parked message ${number}`, String(number)),
  final('inbox discard', 'Discard', `parked message ${number}`, String(number)),
];

// ---- Timers

export function ofTimer([process, key, kind]: [string, string, string]): Action[] {
  const of = (command: string, verb: string): Action => plain(command, verb, `${kind} of ${key}`, process, key, kind);
  return [
    { ...of('timers move', 'Move'), blanks: [{ name: '', label: 'Due at, or +15m for in 15 minutes', value: '+1h' }] },
    of('timers fire', 'Fire'),
    { ...of('timers cancel', 'Cancel'), isFinal: true },
  ];
}

export const ofAllTimers: Action[] = [
  { ...plain('timers hold', 'Hold', 'all timers'), blanks: [{ name: 'why', label: 'Why, for those who wonder', value: '' }] },
  plain('timers resume', 'Resume', 'all timers'),
];

export const ofParkedTimers = (process: string): Action[] => [plain('timers retry', 'Retry', `parked timers of ${process}`, process)];

// ---- Findings

const acknowledged: Severity[] = ['warning', 'critical', 'unknown'];

export function ofFinding({ code, subject, severity }: Pick<Finding, 'code' | 'subject' | 'severity'>): Action[] {
  const of = (command: string, verb: string): Action =>
    plain(command, verb, [code.replaceAll('_', ' '), subject].filter(Boolean).join(' of '), code, ...(subject === null ? [] : [subject]));
  if (severity === 'known') return [of('findings unack', 'Withdraw')];
  const blanks = [{ name: 'why', label: 'Why it may be so for a while', value: '' }, { name: 'for', label: 'For how long', value: '24h' }];
  return acknowledged.includes(severity) ? [{ ...of('findings ack', 'Acknowledge'), blanks }] : [];
}

/** A job that another page began: only its command line is known. */
export function ofLine(line: string): Action {
  const command = /^[a-z]+( [a-z]+)+(?= |$)/.exec(line)?.[0] ?? line;
  const verb = /\b(retry|discard|resume|adopt|skip|cancel|move|fire|hold|pause|ack|unack)\b/.exec(command)?.[0] ?? 'run';
  return {
    ...plain(command, verb.replace(/^./, (letter) => letter.toUpperCase()), line.slice(0, line.indexOf(verb)).trim()),
    isFinal: /discard|skip|adopt|timers cancel/.test(command),
  };
}
