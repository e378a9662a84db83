// Times in words, with the exact ones at hand. Ages use the server's clock.
import { signal } from '@preact/signals';
import { utc } from './preferences';

/** Now, by this machine's clock. Updated each second. */
const tick = signal(Date.now());
setInterval(() => {
  if (!document.hidden) tick.value = Date.now();
}, 1000);
document.addEventListener('visibilitychange', () => (tick.value = Date.now()));

const serverIsAhead = signal(0);
/** An export's present: time stands still there. */
const end = signal<number | null>(null);
export function noteServerTime(at: string, isEnd: boolean): void {
  end.value = isEnd ? Date.parse(at) : null;
  const ahead = Date.parse(at) - Date.now();
  // A smaller difference is the answer's travel time.
  if (Number.isFinite(ahead) && Math.abs(ahead - serverIsAhead.peek()) > 1500) serverIsAhead.value = ahead;
}
export const now = (): number => end.value ?? tick.value + serverIsAhead.value;
export const localNow = (): number => tick.value;

const two = (value: number): string => String(value).padStart(2, '0');

/** 0.4 s · 17 s · 17 min 02 s · 2 h 05 min · 3 d 4 h */
export function duration(seconds: number): string {
  const s = Math.max(0, seconds);
  if (s < 0.0005) return '0 s';
  if (s < 1) return s < 0.1 ? `${Math.max(1, Math.round(s * 1000))} ms` : `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${two(Math.floor(s % 60))} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${two(Math.floor((s % 3600) / 60))} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** As `duration`, in its largest unit. */
export function roughly(seconds: number): string {
  const s = Math.max(0, seconds);
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

function parts(at: Date, isUtc: boolean): { day: string; time: string; zone: string } {
  const shifted = isUtc ? at : new Date(at.getTime() - at.getTimezoneOffset() * 60000);
  const text = shifted.toISOString();
  const minutes = -at.getTimezoneOffset();
  const sign = minutes < 0 ? '−' : '+';
  const offset = `${sign}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
  return { day: text.slice(0, 10), time: text.slice(11, 23), zone: isUtc ? 'UTC' : offset };
}

export function exact(at: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return at;
  const { day, time, zone } = parts(date, utc.value);
  return `${day} ${time} ${zone}`;
}

/** The time of day, with the date if it isn't today. */
export function clock(at: string, options: { seconds?: boolean } = {}): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return at;
  const { day, time } = parts(date, utc.value);
  const isToday = day === parts(new Date(now()), utc.value).day;
  return `${isToday ? '' : `${day} `}${time.slice(0, options.seconds === false ? 5 : 8)}`;
}

export function Clock({ at }: { at: string | null }) {
  return at === null ? <>–</> : <time dateTime={at} title={exact(at)}>{clock(at)}</time>;
}

/** "6 min ago", or "in 40 s". */
export function Ago({ at }: { at: string | null }) {
  if (at === null) return <>–</>;
  const seconds = (now() - Date.parse(at)) / 1000;
  const text = seconds < -0.999 ? `in ${roughly(-seconds)}` : seconds < 1 ? 'now' : `${roughly(seconds)} ago`;
  return <time dateTime={at} title={exact(at)}>{text}</time>;
}

/** "since 02:14 (17 min)" */
export function Since({ at }: { at: string | null }) {
  if (at === null) return null;
  return (
    <time dateTime={at} title={exact(at)}>
      since {clock(at, { seconds: false })} ({roughly((now() - Date.parse(at)) / 1000)})
    </time>
  );
}
