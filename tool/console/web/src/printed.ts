// What the commands print, as they did: made by tests/console/run.sh --types. fits.ts compares the types of the page with it.
export interface Check {
  as_of: object;
  asked: unknown[];
  state: string;
  findings: unknown[];
  message: null;
}
export interface Finding {
  code: string;
  severity: string;
  subject: null | string;
  since_at: null | string;
  failure_class: null | string;
  sentence: string;
  remedy: string;
  known: null | string;
  caused_by: null;
}
export interface Counts {
  fence: string;
  leasing: boolean;
  partitioner: string;
  partition_count: number;
  pending: number;
  pending_is_lower_bound: boolean;
  in_flight: number;
  retrying: number;
  redeliveries: number;
  parked: number;
  discarded: number;
  published: number;
  stopped: null | number | string;
  lag_s: number;
  partitions: unknown[];
  workers: unknown[];
  generations: unknown[];
  as_of: object;
  partition: string;
  owner: null | string;
  epoch: number;
  lease_left_s: null | number;
  is_current: boolean;
  published_through: number;
  broker_sequence: number;
  attempts: number;
  error: null;
  failure_class: null;
  stopped_detail: null | string;
  flight_age_s: null;
  oldest: null | number;
  oldest_recorded_at: null | string;
  waiting_since_at: null | string;
  next_attempt_at: null;
}
export interface Outbox {
  fence: string;
  leasing: boolean;
  partitioner: string;
  partition_count: number;
  pending: number;
  pending_is_lower_bound: boolean;
  in_flight: number;
  retrying: number;
  redeliveries: number;
  parked: number;
  discarded: number;
  published: number;
  stopped: number;
  lag_s: number;
  partitions: unknown[];
  workers: unknown[];
  generations: unknown[];
  as_of: object;
}
export interface Partition {
  partition: string;
  owner: null | string;
  epoch: number;
  lease_left_s: null | number;
  is_current: boolean;
  pending: number;
  pending_is_lower_bound: boolean;
  in_flight: number;
  retrying: number;
  redeliveries: number;
  parked: number;
  discarded: number;
  published: number;
  published_through: number;
  broker_sequence: number;
  attempts: number;
  error: null;
  failure_class: null;
  stopped: null | string;
  stopped_detail: null | string;
  flight_age_s: null;
  oldest: null | number;
  oldest_recorded_at: null | string;
  waiting_since_at: null | string;
  next_attempt_at: null;
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
  broker_error: null;
  is_cut_off: boolean;
}
export interface Generation {
  generation: number;
  first_sequence: number;
  partition_count: number;
  is_drained: boolean;
}
export interface Message {
  sequence: number;
  state: string;
  partition: string;
  stream: string;
  stream_version: number;
  id: string;
  type: string;
  recorded_at: string;
  attempts: number;
  reason: null | string;
  error: null | string;
  failure_class: null | string;
  redelivery: null;
  next_attempt_at: null;
  since_at: null | string;
  broker_from: null;
  broker_to: null;
}
export interface Group {
  group: string;
  streams: number;
  type: string;
  reason: string;
  failure_class: string;
  first_at: string;
  last_at: string;
  sample: number;
  error: string;
}
export interface Projector {
  projector: string;
  build: number;
  projector_version: number;
  kind: string;
  state: string;
  position: number;
  lag_events: number;
  lag_s: number;
  owner: null;
  stopped: boolean;
  failing: null;
  error: null;
  attempts: number;
  parked: number;
  skipped: number;
}
export interface Process {
  process: string;
  position: number;
  lag_events: number;
  lag_s: number;
  owner: null;
  pending: number;
  pending_is_lower_bound: boolean;
  due: number;
  overdue: number;
  oldest_due_s: null;
  next_due_at: string;
  unknown: number;
  parked: number;
  fired: number;
  failed: number;
  parked_events: number;
  stopped: boolean;
  error: null;
}
export interface Minute {
  at: string;
  appended: null | number;
  published: null | number;
  published_per_second: null | number;
  sent_again: null;
  failed: null | number;
  taken_over: null | number;
  pending: null | number;
  lag_s: null | number;
  parked: null | number;
  workers: null | number;
  without_owner: null | number;
  stopped: null | number;
}
export interface Change {
  at: string;
  part: string;
  subject: null | string;
  what: string;
  who: null | string;
  detail: null | string;
  change: number;
}
export interface Known {
  code: string;
  subject: null;
  severity: string;
  amount: number;
  who: string;
  at: string;
  until_at: string;
  why: string;
}
export interface Setting {
  setting: string;
  value: null | string;
  from: string;
}
export interface StoredEvent {
  sequence: number;
  stream: string;
  stream_version: number;
  id: string;
  type: string;
  tags: unknown[];
  schema_version: number;
  publishes: boolean;
  recorded_at: string;
  correlation_id: string;
  causation_id: null | string;
  metadata: null | object;
  payload: object;
  payload_base64: null;
}
export interface Twig {
  sequence: number;
  depth: number;
  stream: string;
  stream_version: number;
  id: string;
  type: string;
  recorded_at: string;
  causation_id: null;
  is_asked: boolean;
  state: string;
  partition: string;
  broker_sequence: null;
  error: string;
}
export interface Timer {
  process: string;
  key: string;
  kind: string;
  schema_version: number;
  state: string;
  due_at: string;
  late_s: null;
  recurrence: null;
  attempts: number;
  next_attempt_at: null;
  error: null;
  set_at: string;
  correlation_id: string;
  causation_id: string;
  actor: string;
  payload: object;
  payload_base64: null;
}
export interface Action {
  id: string;
  at: string;
  who: string;
  part: string;
  what: string;
  selection: null;
  planned: null;
  done: null;
  changed: null;
  failed: null;
  state: string;
  detail: string;
}
export interface FollowerMinute {
  projector: string;
  at: string;
  handled: null | number;
  handled_per_second: null | number;
  lag_s: null | number;
}
export interface Topology {
  types_known: boolean;
  outbox: boolean;
  event_types: unknown[];
  followers: unknown[];
}
export interface EventType {
  category: string;
  type: string;
  publishes: boolean;
  is_recorded: boolean;
}
export interface Following {
  follower: string;
  kind: string;
  handles: null;
  timers: null;
  broker_stream: null;
  filter: null;
  is_in_database: boolean;
}
