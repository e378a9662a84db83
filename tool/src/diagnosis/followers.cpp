// Findings about followers of a log: projectors, reactions, processes and consumers.
#include "cli/text.hpp"
#include "diagnosis/findings.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace stela::tool {
namespace {

/// "projector 'orders' v2 (building) ".
std::string name_of(const ProjectorStatus& one) {
  std::string text = one.kind == ProjectionKind::reaction ? "reaction '" : "projector '";
  text += in_one_line(one.name) + "' v" + std::to_string(one.version);
  if (one.state != BuildState::living) text += " (" + std::string{to_string(one.state)} + ")";
  return text + ' ';
}

void judge_stop(const ProjectorStatus& one, const Facts& facts, Findings& findings) {
  const std::string at = std::to_string(one.failing.value());
  const std::string retry = "'" + facts.call + "projections retry " + in_one_line(one.name) + "'";
  const std::string skip =
      "'" + facts.call + "projections skip " + in_one_line(one.name) + " " + at + "'";
  std::string remedy;
  if (one.failing.value() == 0) {
    // No event is to blame, so none can be skipped.
    remedy = "do what it says, or rename the table that it names; then " + retry;
  } else if (one.attempts == 0) {
    remedy = "run a release that knows the version, which continues by itself; " + skip +
             " skips the event";
  } else {
    remedy = "fix its handler, then " + retry + "; " + skip + " skips the event";
  }
  const std::string where = one.failing.value() == 0 ? "" : " at event " + at;
  findings.add({.code = Code::projector_stopped,
                .subject = one.name,
                .since = one.stopped_at,
                .trouble = "stopped",
                .sentence = name_of(one) + "is stopped" + where + ": " + in_one_line(one.error),
                .remedy = std::move(remedy)});
}

/// Judges what it waits for, if it isn't stopped.
void judge_failure(const ProjectorStatus& one, Findings& findings) {
  if (one.failing.value() == 0) return;
  const std::string at = std::to_string(one.failing.value());
  if (one.attempts > 0) {
    findings.add({.code = Code::projector_failing,
                  .subject = one.name,
                  .since = one.failing_since,
                  .trouble = "retrying",
                  .sentence = name_of(one) + "tries event " + at + " again (" +
                              counted(one.attempts, "attempt") + "): " + in_one_line(one.error),
                  .remedy = "it is tried again by itself; see the handler"});
  } else if (one.owner.empty()) {
    findings.add({.code = Code::projector_unknown_version,
                  .subject = one.name,
                  .since = one.failing_since,
                  .trouble = "waits for a newer release",
                  .sentence = name_of(one) + "waits at event " + at + ": " + in_one_line(one.error),
                  .remedy = "run a release that knows the version"});
  }
}

/// An inline projector only lags if it was left behind.
void judge_left_behind(const ProjectorStatus& one, const Facts& facts, const Tolerance& tolerance,
                       Findings& findings) {
  findings.add_judged(
      tolerance.projection_lag, in_seconds(one.lag),
      {.code = Code::projector_late,
       .subject = one.name,
       .since = facts.at - one.lag,
       .trouble = "left behind",
       .sentence = name_of(one) + "is " + counted(one.lag_events, "event") + " behind, for " +
                   in_words(one.lag) + ": it was left behind, and takes no part in appends",
       .remedy = "restart a process that has it, which catches it up and lets it take part again"});
}

/// A rebuild lags until it is done, so it isn't judged.
void judge_lag(const ProjectorStatus& one, const Facts& facts, const Tolerance& tolerance,
               Findings& findings) {
  if (one.state != BuildState::living || one.stopped) return;
  if (one.kind == ProjectionKind::inline_) {
    return judge_left_behind(one, facts, tolerance, findings);
  }
  const std::string behind =
      name_of(one) + "is " + counted(one.lag_events, "event") + " behind, for " + in_words(one.lag);
  const Timestamp since = facts.at - one.lag;
  if (is_unattended(one, facts.at)) {
    const std::string runner = one.owner.empty() ? ", and no runner drives it"
                                                 : ", and its runner '" + in_one_line(one.owner) +
                                                       "' has ended or hangs: its lease is over";
    findings.add({.code = Code::projector_unattended,
                  .subject = one.name,
                  .since = since,
                  .trouble = "no runner",
                  .sentence = behind + runner,
                  .remedy = "start the application that runs it"});
  } else {
    findings.add_judged(tolerance.projection_lag, in_seconds(one.lag),
                        {.code = Code::projector_late,
                         .subject = one.name,
                         .since = since,
                         .trouble = "behind",
                         .sentence = behind,
                         .remedy = "see the log of its runner" +
                                   (one.owner.empty() ? "" : " '" + in_one_line(one.owner) + "'")});
  }
}

void judge_process(const ProcessStatus& one, const Facts& facts, const Tolerance& tolerance,
                   Findings& findings) {
  const std::string who = "process '" + in_one_line(one.name) + "' ";
  const std::string of_process = " --process " + in_one_line(one.name) + "'";
  if (one.overdue > 0) {
    findings.add_judged(tolerance.overdue_timers, in_seconds(one.oldest_due),
                        {.code = Code::process_overdue,
                         .subject = one.name,
                         .since = facts.at - one.oldest_due,
                         .trouble = "overdue timers",
                         .sentence = who + "is late with " + counted(one.overdue, "timer") +
                                     ", the first by " + in_words(one.oldest_due) +
                                     (one.owner.empty() ? ", and no runner drives it" : ""),
                         .remedy = one.owner.empty() ? "start the application that runs it"
                                                     : "'" + facts.call + "timers list --overdue" +
                                                           of_process + " lists them"});
  }
  findings.add_judged(
      tolerance.parked_timers, static_cast<double>(one.parked),
      {.code = Code::process_parked,
       .subject = one.name,
       .amount = one.parked,
       .trouble = "parked timers",
       .sentence = who + "parked " + counted(one.parked, "timer"),
       .remedy = "'" + facts.call + "timers list --parked" + of_process + " says why; then '" +
                 facts.call + "timers retry " + in_one_line(one.name) + "', or '" + facts.call +
                 "timers cancel " + in_one_line(one.name) + " KEY KIND'"});
  if (one.unknown > 0) {
    findings.add(
        {.code = Code::process_unknown_timers,
         .subject = one.name,
         .trouble = "unknown timers",
         .sentence = who + "has " + counted(one.unknown, "timer") + " that no runner knows",
         .remedy = "start a runner of the release that sets them"});
  }
}

std::string way_to_unpark_in_inbox(const Facts& facts) {
  return "'" + facts.call + "inbox list' says what is parked, and why; then '" + facts.call +
         "inbox retry MESSAGE' or '" + facts.call + "inbox discard MESSAGE'";
}

void judge_reader(const nats::ReaderStatus& reader, const Facts& facts, Findings& findings) {
  const std::string name = in_one_line(reader.consumer);
  const std::string who = "consumer '" + name + "' ";
  const std::string stream = "'" + in_one_line(reader.broker_stream) + "'";
  const std::string place = "message " + std::to_string(reader.failing) + " of " + stream;
  const std::string error = in_one_line(reader.error);
  Finding found{.subject = reader.consumer};
  if (reader.is_paused) return;
  if (reader.is_overdue) {
    found.code = Code::consumer_overdue;
    found.since = reader.lease_until;
    found.trouble = "isn't read";
    found.sentence = who + "doesn't read " + stream + ": the lease of '" +
                     in_one_line(reader.owner) + "' is over";
    found.remedy = "start a consumer; if one runs, that process hangs in a handler: end it";
  } else if (reader.failing > 0 && reader.attempts > 0) {
    found.code = Code::consumer_failing;
    found.since = reader.failing_since;
    found.trouble = "failing";
    found.sentence = who + "fails at " + place + ": " + error;
    found.remedy = "it is tried again, and parked in the end; later messages wait meanwhile";
  } else if (reader.failing > 0) {
    found.code = Code::consumer_unknown_version;
    found.since = reader.failing_since;
    found.trouble = "waits for a newer process";
    found.sentence = who + "waits for a newer process at " + place;
    found.remedy = "start a process that knows the version of its event";
  } else if (reader.is_waiting) {
    found.code = Code::consumer_waiting;
    found.since = reader.failing_since;
    found.trouble = "waits for other streams";
    found.sentence = who + "waits at " + stream + ": " + error;
    found.remedy = "start its readers of those streams; '" + facts.call + "inbox forget " + name +
                   " STREAM' if a stream isn't to be read any more";
  } else if (!reader.error.empty()) {
    found.code = Code::consumer_standing;
    found.since = reader.failing_since;
    found.trouble = "stands still";
    found.sentence = who + "stands still at " + stream + ": " + error;
    found.remedy = way_to_unpark_in_inbox(facts);
  } else {
    return;
  }
  findings.add(std::move(found));
}

bool is_unattended(const nats::ReaderStatus& reader) noexcept {
  // A reader that waits for another release gives its stream back.
  const bool waits = reader.failing > 0 && reader.attempts == 0;
  return reader.owner.empty() && !waits;
}

/// Problems that several streams share are reported once.
void judge_whole(const nats::ConsumerStatus& one, const Facts& facts, Findings& findings) {
  const std::string name = in_one_line(one.consumer);
  std::vector<std::string> unread;
  bool is_paused = false;
  std::optional<Timestamp> paused_at;
  std::optional<Timestamp> unread_since;
  for (const nats::ReaderStatus& reader : one.readers) {
    is_paused = is_paused || reader.is_paused;
    if (reader.paused_at) paused_at = reader.paused_at;
    if (!is_unattended(reader)) continue;
    unread.push_back(reader.broker_stream);
    if (reader.unread_since)
      unread_since = std::min(unread_since.value_or(*reader.unread_since), *reader.unread_since);
  }
  if (is_paused) {
    return findings.add({.code = Code::consumer_paused,
                         .subject = one.consumer,
                         .since = paused_at,
                         .trouble = "paused",
                         .sentence = "consumer '" + name + "' is paused",
                         .remedy = "'" + facts.call + "inbox resume " + name + "' ends that"});
  }
  if (unread.empty()) return;
  const std::string others =
      unread.size() > 1 ? " and " + counted(std::ssize(unread) - 1, "other stream") : "";
  findings.add({.code = Code::consumer_unattended,
                .subject = one.consumer,
                .since = unread_since,
                .trouble = "nobody reads",
                .sentence = "nobody reads '" + in_one_line(unread.front()) + "'" + others +
                            " for consumer '" + name + "'",
                .remedy = "start it, or see in its log why it doesn't reach the broker; '" +
                          facts.call + "inbox forget " + name +
                          " STREAM' if a stream isn't to be read any more"});
}

void judge_consumer(const nats::ConsumerStatus& one, const Facts& facts, Findings& findings) {
  const std::string who = "consumer '" + in_one_line(one.consumer) + "' ";
  for (const nats::ReaderStatus& reader : one.readers) judge_reader(reader, facts, findings);
  judge_whole(one, facts, findings);
  if (one.parked_messages > 0) {
    findings.add({.code = Code::consumer_parked,
                  .subject = one.consumer,
                  .since = one.parked_since,
                  .amount = one.parked_messages,
                  .trouble = "parked messages",
                  .sentence = who + "parked " + counted(one.parked_messages, "message"),
                  .remedy = way_to_unpark_in_inbox(facts)});
  }
  if (one.gaps > 0) {
    findings.add({.code = Code::consumer_gaps,
                  .subject = one.consumer,
                  .amount = one.gaps,
                  .trouble = "gaps",
                  .sentence = who + "missed messages of its streams: " + counted(one.gaps, "gap"),
                  .remedy = "'" + facts.call +
                            "inbox gaps' lists them; where they were published, '" + facts.call +
                            "outbox reconcile --against-broker' sends again what the broker lost; "
                            "what was discarded there stays missing: '" +
                            facts.call + "findings ack consumer_gaps " + in_one_line(one.consumer) +
                            " --why TEXT'"});
  }
}

}  // namespace

bool is_unattended(const ProjectorStatus& projector, Timestamp now) noexcept {
  const bool is_driven = !projector.owner.empty() && projector.lease_until > now;
  // A projector that waits for another release is given back on purpose.
  const bool waits = projector.stopped || projector.failing.value() > 0;
  return projector.lag_events > 0 && !is_driven && !waits;
}

void judge_projectors(const Facts& facts, const Tolerance& tolerance, Findings& findings) {
  for (const ProjectorStatus& one : facts.projectors) {
    if (one.state == BuildState::scratch || one.state == BuildState::retired) continue;
    if (one.stopped) {
      judge_stop(one, facts, findings);
    } else {
      judge_failure(one, findings);
    }
    judge_lag(one, facts, tolerance, findings);
    const auto first = facts.first_parked.find(one.name);
    const std::string parked =
        in_one_line(one.name) + ' ' +
        (first == facts.first_parked.end() ? "SEQUENCE" : std::to_string(first->second.value()));
    findings.add_judged(tolerance.parked_events, static_cast<double>(one.parked),
                        {.code = Code::projector_parked,
                         .subject = one.name,
                         .amount = one.parked,
                         .trouble = "parked events",
                         .sentence = name_of(one) + "parked " + counted(one.parked, "event"),
                         .remedy = "'" + facts.call + "projections list' says why; then '" +
                                   facts.call + "projections retry " + parked + "', or '" +
                                   facts.call + "projections skip " + parked + "'"});
  }
}

void judge_timers(const Facts& facts, const Tolerance& tolerance, Findings& findings) {
  for (const TimerHold& hold : facts.holds) {
    const bool has_some = !facts.processes.empty();
    findings.add({.code = Code::timers_held,
                  .severity = has_some ? Severity::critical : Severity::warning,
                  .since = hold.since,
                  .trouble = "timers are held",
                  .sentence = std::string{has_some ? "no timer fires: " : "no timer would fire: "} +
                              in_one_line(hold.detail),
                  .remedy = "'" + facts.call + "timers resume --dry-run' lists what would fire; '" +
                            facts.call + "timers resume' lets it"});
  }
  for (const ProcessStatus& one : facts.processes) judge_process(one, facts, tolerance, findings);
}

void judge_consumers(const Facts& facts, Findings& findings) {
  for (const nats::ConsumerStatus& one : facts.consumers) judge_consumer(one, facts, findings);
}

}  // namespace stela::tool
