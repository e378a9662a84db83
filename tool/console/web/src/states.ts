// The word for a state: the row's own state, and the severity from the diagnosis.
import { words } from './text';
import type { Consumer, Finding, Partition, Projector, Severity } from './types';

export interface State {
  severity: Severity;
  word: string;
}

export function partitionState(partition: Partition, finding: Finding | undefined): State {
  const severity = finding?.severity ?? 'ok';
  if (partition.stopped !== null) return { severity: finding?.severity ?? 'critical', word: `stopped: ${words(partition.stopped)}` };
  if (partition.attempts > 0) return { severity: finding?.severity ?? 'warning', word: `backing off, try ${partition.attempts + 1}` };
  if (finding !== undefined) return { severity, word: words(finding.code.replace(/^partition_/, '')) };
  if (!partition.is_current) return { severity, word: partition.pending > 0 ? 'drains' : 'drained' };
  if (partition.owner === null) return { severity, word: partition.pending > 0 ? 'no owner' : 'idle, no owner' };
  return { severity, word: partition.pending > 0 || partition.in_flight > 0 ? 'publishes' : 'idle' };
}

export function projectorState(projector: Projector, finding: Finding | undefined): State {
  const severity = finding?.severity ?? 'ok';
  if (projector.state !== 'living') return { severity, word: words(projector.state) };
  if (projector.stopped) return { severity: finding?.severity ?? 'critical', word: 'stopped' };
  if (projector.failing !== null) return { severity: finding?.severity ?? 'warning', word: `tries event ${projector.failing} again` };
  if (finding !== undefined) return { severity, word: words(finding.code.replace(/^(projector|process)_/, '')) };
  return { severity, word: (projector.lag_events ?? 0) > 0 ? 'behind' : 'current' };
}

export function consumerState(consumer: Consumer, finding: Finding | undefined): State {
  return { severity: finding?.severity ?? 'ok', word: words(consumer.state) };
}
