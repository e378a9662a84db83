// Curves over minutes, drawn as steps. Missing values are a gap and never a zero. Marks show changes.
// The arrow keys move the crosshair, and a table has the same values.
import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks';
import { Foreign, Table } from './parts';
import { clock, now } from './time';

export interface Curve {
  name: string;
  /** A value for each moment; null: none was recorded. */
  values: (number | null)[];
  show: (value: number) => string;
}
export interface Happening {
  at: string;
  text: string;
}
interface Curves {
  title: string;
  /** The beginning of each step. */
  times: string[];
  step_s: number;
  curves: Curve[];
  marks: Happening[];
  /** The number of complete steps. Later ones aren't over, so nothing is known of them yet. */
  complete: number;
}

const height = 44;
const minute = (at: string): string => clock(at, { seconds: false });

interface Run {
  from: number;
  to: number;
}

/** Runs of steps for which `is` holds. */
export function runs(values: (number | null)[], is: (value: number | null) => boolean): Run[] {
  const found: Run[] = [];
  values.forEach((value, index) => {
    if (!is(value)) return;
    const last = found.at(-1);
    if (last && last.to === index) last.to = index + 1;
    else found.push({ from: index, to: index + 1 });
  });
  return found;
}

/** A step's own amount per second: an amount after a gap counts over the whole gap. */
export function perSecond(amounts: (number | null)[], step_s: number): (number | null)[] {
  let gap = 0;
  return amounts.map((amount) => {
    if (amount === null) {
      ++gap;
      return null;
    }
    const steps = gap + 1;
    gap = 0;
    return amount / (steps * step_s);
  });
}

/** The number of steps that are over, and old enough to be known. */
export function complete(times: string[], amounts: (number | null)[], step_s: number): number {
  const isOpen = (at: string, index: number): boolean => amounts[index] === null && Date.parse(at) + (step_s + 75) * 1000 > now();
  return times.findLastIndex((at, index) => !isOpen(at, index)) + 1;
}

function outline(values: (number | null)[], run: Run, width: number, height: number, most: number): string {
  const x = (index: number): string => ((index / values.length) * width).toFixed(1);
  const y = (value: number): string => (height - 1 - (value / most) * (height - 6)).toFixed(1);
  let path = `M${x(run.from)},${y(values[run.from]!)}`;
  for (let index = run.from; index < run.to; ++index) path += `V${y(values[index]!)}H${x(index + 1)}`;
  return path;
}

interface OfPlot {
  curve: Curve;
  width: number;
  at: number | null;
  marks: number[];
  hatch: string;
  complete: number;
}

function Plot({ curve, width, at, marks, hatch, complete }: OfPlot) {
  const { values } = curve;
  const most = Math.max(...values.map((value) => value ?? 0), Number.EPSILON);
  const x = (index: number): number => (index / values.length) * width;
  return (
    <svg width={width} height={height} aria-hidden="true" focusable="false">
      {runs(values.slice(0, complete), (value) => value === null).map((gap) => (
        <rect key={`g${gap.from}`} x={x(gap.from)} y={0} width={x(gap.to) - x(gap.from)} height={height - 1} fill={`url(#${hatch})`} />
      ))}
      {runs(values, (value) => value !== null).map((run) => {
        const line = outline(values, run, width, height, most);
        return (
          <g key={run.from}>
            <path class="area" d={`${line}V${height - 1}H${x(run.from).toFixed(1)}Z`} />
            <path class="line" d={line} />
          </g>
        );
      })}
      <line class="axis" x1={0} x2={width} y1={height - 0.5} y2={height - 0.5} />
      {marks.map((place, index) => (
        <path key={index} class="happening" d={`M${(place * width).toFixed(1)},6l-4,-6h8z`} />
      ))}
      {at !== null && <line class="cross" x1={x(at + 0.5)} x2={x(at + 0.5)} y1={0} y2={height} />}
    </svg>
  );
}

export function useWidth(): [{ current: HTMLDivElement | null }, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watcher = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    if (box.current) watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  return [box, width];
}

const spark = { width: 96, height: 18 };

/** A curve in a table's cell. Screen readers hear its maximum and its last value. */
export function Spark({ name, values, show }: Curve) {
  const noted = values.filter((value) => value !== null);
  if (noted.length === 0) return <span class="quiet">–</span>;
  const most = Math.max(...noted, Number.EPSILON);
  const text = `${name}: at most ${show(Math.max(...noted))}, last ${last({ name, values, show })}, noted in ${noted.length} of ${values.length} minutes`;
  return (
    <svg class="spark" width={spark.width} height={spark.height} role="img" aria-label={text}>
      <title>{text}</title>
      {runs(values, (value) => value !== null).map((run) => (
        <path key={run.from} d={outline(values, run, spark.width, spark.height, most)} />
      ))}
    </svg>
  );
}

function last(curve: Curve): string {
  const value = curve.values.findLast((one) => one !== null);
  return value === undefined || value === null ? 'not noted' : curve.show(value);
}

export function Chart({ title, times, step_s, curves, marks, complete }: Curves) {
  const [box, width] = useWidth();
  const [at, setAt] = useState<number | null>(null);
  const hatch = useId().replace(/[^\w]/g, '');
  const begin = times.length > 0 ? Date.parse(times[0]!) : 0;
  const span = times.length * step_s * 1000;
  const inside = useMemo(
    () =>
      marks
        .map((mark) => ({ ...mark, place: (Date.parse(mark.at) - begin) / span }))
        .filter((mark) => mark.place >= 0 && mark.place <= 1),
    [marks, begin, span],
  );
  const end = times.length - 1;
  const point = at === null ? null : Math.min(at, end);
  const shown = (curve: Curve, index: number): string => {
    const value = curve.values[index];
    if (value !== null && value !== undefined) return curve.show(value);
    return index < complete ? 'not noted' : 'not over yet';
  };
  const within = (index: number): string =>
    inside.filter((mark) => Math.floor(mark.place * times.length) === index).map((mark) => mark.text).join('; ');
  const near = (index: number): typeof inside =>
    inside.filter((mark) => Math.abs(mark.place * times.length - index - 0.5) <= Math.max(0.5, (6 / Math.max(width, 1)) * times.length));

  const move = (event: PointerEvent): void => {
    const area = box.current!.getBoundingClientRect();
    setAt(Math.max(0, Math.min(end, Math.floor(((event.clientX - area.left) / area.width) * times.length))));
  };
  const press = (event: KeyboardEvent): void => {
    const here = point ?? end;
    const step = event.shiftKey ? 10 : 1;
    const target: Record<string, number | null> = {
      ArrowLeft: here - step, ArrowDown: here - step, ArrowRight: here + step, ArrowUp: here + step, Home: 0, End: end, Escape: null,
    };
    if (!(event.key in target)) return;
    event.preventDefault();
    const to = target[event.key]!;
    setAt(to === null ? null : Math.max(0, Math.min(end, to)));
  };
  const say = (index: number): string =>
    [
      minute(times[index]!),
      ...curves.map((curve) => `${curve.name} ${shown(curve, index)}`),
      ...near(index).map((mark) => mark.text),
    ].join(', ');

  if (curves.every((curve) => curve.values.every((value) => value === null))) {
    return <p class="quiet">Nothing is noted yet: workers note these figures each minute.</p>;
  }
  const hasGaps = curves.some((curve) => curve.values.slice(0, complete).includes(null));
  return (
    <div class="chart">
      <svg width="0" height="0" aria-hidden="true" class="patterns">
        <pattern id={hatch} width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <line class="hatch" x1="0" y1="0" x2="0" y2="5" />
        </pattern>
      </svg>
      <div
        class="plots" role="slider" tabIndex={0} aria-label={`${title}: move through the minutes`} aria-valuemin={0} aria-valuemax={end}
        aria-valuenow={point ?? end} aria-valuetext={say(point ?? end)} aria-orientation="horizontal"
        onKeyDown={press} onPointerMove={move} onPointerDown={move} onPointerLeave={() => setAt(null)} onBlur={() => setAt(null)}
      >
        {curves.map((curve, index) => (
          <div class="plot" key={curve.name}>
            <span class="name">{curve.name}</span>
            <div class="area-of-plot" ref={index === 0 ? box : null}>
              {width > 0 && (
                <Plot
                  curve={curve} width={width} at={point} hatch={hatch} complete={complete}
                  marks={index === 0 ? inside.map((mark) => mark.place) : []}
                />
              )}
            </div>
            <span class="value">{point === null ? last(curve) : shown(curve, point)}</span>
          </div>
        ))}
      </div>
      <p class="legend">
        <span>{point === null ? `${minute(times[0]!)} to ${minute(times[end]!)}` : <Foreign text={say(point)} />}</span>
        {point === null && inside.length > 0 && <span><span class="happening" aria-hidden="true">▼</span> {inside.length} changes</span>}
        {point === null && hasGaps && <span><span aria-hidden="true">░</span> nobody noted it</span>}
      </p>
      <details>
        <summary>Table</summary>
        <div class="scroll" tabIndex={0} role="region" aria-label={`${title}, as a table`}>
          <Table
            caption={title} rows={times.map((_, index) => end - index)} id={(index) => index}
            columns={[
              { head: 'From', names: true, cell: (index) => minute(times[index]!) },
              ...curves.map((curve) => ({ head: curve.name, number: true, cell: (index: number) => shown(curve, index) })),
              { head: 'Changes', cell: (index) => <Foreign text={within(index)} /> },
            ]}
          />
        </div>
      </details>
    </div>
  );
}
