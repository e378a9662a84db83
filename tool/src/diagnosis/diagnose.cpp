#include "diagnosis/findings.hpp"

#include "cli/text.hpp"

#include <algorithm>
#include <initializer_list>
#include <numeric>

namespace stela::tool {
namespace {

using enum Code;

/// The first finding with one of these codes, in the order of the codes. If a subject is given,
/// only its findings count.
std::optional<std::size_t> find(const std::vector<Finding>& findings,
                                std::initializer_list<Code> codes, std::string_view subject = {}) {
  for (const Code code : codes) {
    for (std::size_t i = 0; i < findings.size(); ++i) {
      if (findings[i].code != code) continue;
      if (subject.empty() || findings[i].subject == subject) return i;
    }
  }
  return {};
}

/// No finding is its own cause, and no code is caused by the code of its effect.
std::optional<std::size_t> cause_of(const Finding& finding, const std::vector<Finding>& findings) {
  switch (finding.code) {
    case outbox_late:
      return find(findings,
                  {database_down, outbox_unattended, outbox_cut_off, partition_poison,
                   partition_foreign_writer, partition_broker_lost, partition_store_went_back,
                   partition_unreadable, partition_damaged, partition_missing,
                   partition_unrecognized, partition_backing_off, partition_unanswered});
    case partition_backing_off:
      if (const auto unfit = find(findings, {stream_unfit}, finding.subject)) return unfit;
      return find(findings, {outbox_cut_off, worker_cut_off});
    case partition_unanswered:
      return find(findings, {outbox_cut_off, worker_cut_off});
    case database_unanswered:
      return find(findings, {database_locked});
    case worker_silent:
      return find(findings, {database_down, database_locked});
    case worker_cut_off:
      return find(findings, {broker_unreached});
    case worker_misconfigured:
      return find(findings, {stream_unfit});
    case outbox_cut_off:
      return find(findings, {worker_cut_off});
    case partition_lease_expired:
      return find(findings, {outbox_unattended, worker_silent, worker_ended});
    case outbox_unattended:
      return find(findings, {worker_silent, worker_ended});
    case projector_late:
      return find(findings, {projector_failing, projector_unknown_version}, finding.subject);
    case process_overdue:
      return find(findings, {projector_stopped, projector_unattended}, finding.subject);
    case consumer_waiting:
      return find(findings, {consumer_overdue, consumer_failing, consumer_standing});
    default:
      return {};
  }
}

std::optional<Timestamp> since_of(const Finding& finding, const Facts& facts) {
  const auto noted = facts.since.find({finding.code, finding.subject});
  return noted == facts.since.end() ? std::nullopt : std::optional{noted->second};
}

/// False if it is worse than the operator knew, or if it began later.
bool covers(const Acknowledgement& known, const Finding& finding) {
  const bool is_same =
      known.code == facts_of(finding.code).word && known.subject == finding.subject;
  const bool is_worse =
      finding.severity == Severity::critical && known.severity != word_of(Severity::critical);
  const bool is_later = finding.since > known.at || finding.latest > known.at;
  return is_same && !is_worse && !is_later && finding.amount <= known.amount;
}

void mark_known(const std::vector<Acknowledgement>& acknowledged, Finding& finding) {
  for (const Acknowledgement& one : acknowledged) {
    if (!covers(one, finding)) continue;
    finding.severity = Severity::fine;
    finding.known = "known to " + in_one_line(one.who) + " until " + to_string(one.until) + ": " +
                    in_one_line(one.why);
  }
}

/// The length of the chain of causes that begins at it.
std::size_t depth_of(const std::vector<Finding>& findings, std::size_t at) {
  std::size_t depth = 0;
  for (auto next = findings[at].caused_by; next; next = findings[*next].caused_by) ++depth;
  return depth;
}

/// Worst first. Critical: the most affected first, then their causes. Warnings: causes first.
/// Otherwise in the order of the rules.
std::vector<Finding> in_order(std::vector<Finding> findings) {
  std::vector<std::size_t> order(findings.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (findings[a].severity != findings[b].severity) {
      return findings[a].severity > findings[b].severity;
    }
    const std::size_t of_a = depth_of(findings, a);
    const std::size_t of_b = depth_of(findings, b);
    return findings[a].severity == Severity::critical ? of_a > of_b : of_a < of_b;
  });
  std::vector<std::size_t> place(findings.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<Finding> sorted;
  for (const std::size_t from : order) {
    sorted.push_back(std::move(findings[from]));
    if (sorted.back().caused_by) sorted.back().caused_by = place[*sorted.back().caused_by];
  }
  return sorted;
}

}  // namespace

Severity Limit::judge(double value) const noexcept {
  if (critical && value > *critical) return Severity::critical;
  return warning && value > *warning ? Severity::warning : Severity::fine;
}

double in_seconds(std::chrono::microseconds time) noexcept {
  return std::chrono::duration<double>{time}.count();
}

void Findings::add(Finding finding) {
  if (finding.severity == Severity::fine) finding.severity = facts_of(finding.code).severity;
  found_.push_back(std::move(finding));
}

void Findings::add_judged(const Limit& limit, double value, Finding finding) {
  finding.severity = limit.judge(value);
  if (finding.severity != Severity::fine) found_.push_back(std::move(finding));
}

std::vector<Finding> diagnose(const Facts& facts, const Tolerance& tolerance) {
  Findings judged;
  if (!facts.store_problem.empty()) {
    judged.add(
        {.code = database_down,
         .trouble = "database",
         .sentence = "database: " + in_one_line(facts.store_problem),
         .remedy = facts.store_remedy.empty()
                       ? "do what it says, or start the database; workers continue by themselves"
                       : facts.store_remedy});
  }
  for (const Unanswered& one : facts.unanswered) {
    judged.add(
        {.code = database_unanswered,
         .subject = one.what,
         .trouble = "not answered",
         .sentence = "database: its " + one.what + " can't be asked: " + in_one_line(one.why),
         .remedy = "grant what is missing to this role, end who locks the table, or see why "
                   "the server is slow; the rest was asked"});
  }
  if (facts.server) judge_server(*facts.server, facts, judged);
  if (facts.outbox) judge_outbox(*facts.outbox, facts, tolerance, judged);
  if (facts.outbox && facts.broker) judge_broker(*facts.broker, *facts.outbox, facts, judged);
  judge_consumers(facts, judged);
  judge_projectors(facts, tolerance, judged);
  judge_timers(facts, tolerance, judged);
  std::vector<Finding> findings = std::move(judged).take();
  for (Finding& finding : findings) {
    finding.caused_by = cause_of(finding, findings);
    if (!finding.since) finding.since = since_of(finding, facts);
    mark_known(facts.acknowledged, finding);
  }
  return in_order(std::move(findings));
}

}  // namespace stela::tool
