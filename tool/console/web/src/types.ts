// The commands' output with --json, as far as the pages show it.

export interface AsOf {
  sequence: number | null;
  /** For an export, the time of its last event. */
  at: string;
  export?: string;
}
export interface Asked {
  what: string;
  answered: boolean;
  since_at: string | null;
  error: string | null;
}
/** Where a list continues, as its command reported it. */
export interface More {
  option: string;
  value: string;
  /** What was searched, if the search ended at its limit instead of a full page; otherwise empty. */
  note: string;
  /** The command stopped at its search limit, and continues from there. */
  look_further: boolean;
}
export interface Envelope<T> {
  as_of: AsOf;
  asked?: Asked[];
  more?: More | null;
  data: T;
}
/** The person's grants. `payloads` also covers states and error texts. */
export interface Grants {
  view: boolean;
  payloads: 'none' | 'masked' | 'full';
  operate: boolean;
  admin: boolean;
}
export interface About {
  stores: string[];
  who?: string;
  grants?: Grants;
  /** True if the console may act, whoever asks. */
  acts?: boolean;
  /** Set if it shows the contents of an export instead of a database in use. */
  export?: { file: string; last_event_at: string | null } | null;
  program: string;
  version: string;
  environment: string | null;
  color: string | null;
  can_act: boolean;
  /** True if the program knows the application's types and can show states. */
  has_types?: boolean;
}

export type Severity = 'ok' | 'warning' | 'critical' | 'unknown' | 'known';
export interface Finding {
  code: string;
  severity: Severity;
  subject: string | null;
  since_at: string | null;
  failure_class: string | null;
  sentence: string;
  remedy: string | null;
  known: string | null;
}
export interface Check {
  as_of: AsOf;
  asked: Asked[];
  state: Severity;
  findings: Finding[];
  message: string | null;
}
/** Messages by state, of a partition or of all. */
export interface Counts {
  pending: number;
  pending_is_lower_bound: boolean;
  in_flight: number;
  retrying: number;
  redeliveries: number;
  parked: number;
  discarded: number;
  published: number;
}
export interface Partition extends Counts {
  partition: string;
  owner: string | null;
  epoch: number;
  lease_left_s: number | null;
  is_current: boolean;
  published_through: number;
  broker_sequence: number;
  attempts: number;
  error: string | null;
  stopped: string | null;
  stopped_detail: string | null;
  flight_age_s: number | null;
  oldest: number | null;
  waiting_since_at: string | null;
  next_attempt_at: string | null;
}
export interface Worker {
  worker: string;
  host: string;
  pid: number;
  started_at: string;
  heartbeat_until_at: string;
  is_alive: boolean;
  partitions: number;
  broker: string;
  broker_error: string | null;
  is_cut_off: boolean;
}
export interface Generation {
  generation: number;
  first_sequence: number;
  partition_count: number;
  is_drained: boolean;
}
export interface Outbox extends Counts {
  fence: string;
  leasing: boolean;
  partitioner: string;
  partition_count: number;
  stopped: number;
  lag_s: number | null;
  partitions: Partition[];
  workers: Worker[];
  generations: Generation[];
}
export interface Message {
  sequence: number;
  state: string;
  partition: string | null;
  stream: string;
  stream_version: number;
  id: string;
  type: string;
  recorded_at: string;
  attempts: number;
  reason: string | null;
  error: string | null;
  failure_class: string | null;
  redelivery: number | string | null;
  next_attempt_at: string | null;
  since_at: string | null;
  broker_from: number | null;
  broker_to: number | null;
}
export interface Group {
  group: string;
  streams: number;
  type: string;
  reason: string;
  failure_class: string | null;
  first_at: string;
  last_at: string;
  sample: number;
  error: string | null;
}
export interface Projector {
  projector: string;
  build: number;
  projector_version: number;
  kind: string;
  state: string;
  position: number;
  lag_events: number | null;
  lag_s: number | null;
  owner: string | null;
  stopped: boolean;
  failing: number | null;
  error: string | null;
  attempts: number;
  parked: number;
  skipped: number;
}
/** A span of a minute or longer of a projector, reaction or process. */
export interface FollowerMinute {
  projector: string;
  at: string;
  handled: number | null;
  handled_per_second: number | null;
  lag_s: number | null;
}
export interface EventType {
  category: string | null;
  type: string;
  publishes: boolean;
  is_recorded: boolean;
}
export interface Following {
  follower: string;
  kind: string;
  /** Null: unknown here. */
  handles: string[] | null;
  timers: string[] | null;
  broker_stream: string | null;
  filter: string | null;
  is_in_database: boolean;
}
export interface Topology {
  types_known: boolean;
  outbox: boolean;
  event_types: EventType[];
  followers: Following[];
}
export interface Process {
  process: string;
  position: number;
  lag_events: number | null;
  lag_s: number | null;
  owner: string | null;
  pending: number;
  due: number;
  overdue: number;
  oldest_due_s: number | null;
  next_due_at: string | null;
  unknown: number;
  parked: number;
  fired: number;
  failed: number;
  parked_events: number;
  stopped: boolean;
  error: string | null;
}
export interface Consumer {
  consumer: string;
  broker_stream: string;
  filter: string | null;
  position: number;
  state: string;
  owner: string | null;
  failing: number | null;
  attempts: number;
  error: string | null;
  parked: number;
  parked_streams: number;
  gaps: number;
}
export interface Minute {
  at: string;
  appended: number | null;
  published: number | null;
  published_per_second: number | null;
  failed: number | null;
  pending: number | null;
  lag_s: number | null;
}
export interface Change {
  at: string;
  part: string;
  subject: string | null;
  what: string;
  who: string | null;
  detail: string | null;
  change: number;
}
export interface Action {
  at: string;
  who: string | null;
  part: string;
  what: string;
  detail: string | null;
  id: string;
}
export interface Known {
  code: string;
  subject: string | null;
  severity: Severity;
  amount: number;
  who: string;
  at: string;
  until_at: string;
  why: string;
}
export interface Setting {
  setting: string;
  value: string | number | boolean | null;
  from: string;
}
export interface StoredEvent {
  sequence: number;
  stream: string;
  stream_version: number;
  id: string;
  type: string;
  tags: string[];
  schema_version: number;
  publishes: boolean;
  recorded_at: string;
  correlation_id: string | null;
  causation_id: string | null;
  metadata: Record<string, unknown> | null;
  payload: unknown;
  payload_base64: string | null;
}
export interface Twig {
  sequence: number;
  depth: number;
  stream: string;
  type: string;
  recorded_at: string;
  is_asked: boolean;
  state: string;
  partition: string | null;
  broker_sequence: number | null;
  error: string | null;
}
export interface Timer {
  process: string;
  key: string;
  kind: string;
  schema_version: number;
  state: string;
  due_at: string;
  late_s: number | null;
  recurrence: string | null;
  attempts: number;
  next_attempt_at: string | null;
  error: string | null;
  set_at: string;
  correlation_id: string | null;
  causation_id: string | null;
  actor: string | null;
  payload: unknown;
  payload_base64: string | null;
}
export interface ParkedEvent {
  projector: string;
  sequence: number;
  [key: string]: unknown;
}
export interface Found {
  kind: string | null;
  name: string;
}
/** A part of the overview: its command's output, or its error; null if the store has no such part. */
export type Part<T> = T | { error: string } | null;
export interface OverviewData {
  check: Part<Check>;
  why: Part<Finding[]>;
  outbox: Part<Outbox>;
  workers: Part<Worker[]>;
  projections: Part<Projector[]>;
  inbox: Part<Consumer[]>;
  timers: Part<Process[]>;
  history: Part<Minute[]>;
  changes: Part<Change[]>;
}

export function answered<T extends object>(part: Part<T> | undefined): T | null {
  return part === undefined || part === null || 'error' in part ? null : (part as T);
}
export function refusal(part: Part<object> | undefined): string | null {
  return part !== undefined && part !== null && 'error' in part ? String(part.error) : null;
}
