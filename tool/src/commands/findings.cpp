// findings ack, unack, known: the findings that operators have acknowledged.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "description/description.hpp"
#include "diagnosis/facts.hpp"

#include <stela/eventstore/detail/journal.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

constexpr Field<Acknowledgement> known_fields[] = {
    field<&Acknowledgement::code>("code"),
    field<&Acknowledgement::subject>("subject", {.kind = Kind::untrusted, .absent = "-"}),
    field<&Acknowledgement::severity>("severity"),
    field<&Acknowledgement::amount>("amount"),
    field<&Acknowledgement::who>("who", {.kind = Kind::untrusted}),
    field<&Acknowledgement::at>("at"),
    field<&Acknowledgement::until>("until_at", {.title = "until"}),
    field<&Acknowledgement::why>("why", {.kind = Kind::untrusted, .most = 80}),
};
constexpr Description<Acknowledgement> acknowledged_finding{
    known_fields, {.table = "code subject severity amount who until_at why"}};

Code code_named(std::string_view word) {
  for (const CodeFacts& one : all_codes()) {
    if (one.word == word) return one.code;
  }
  throw Misuse{"there is no code '" + in_one_line(word) +
               "'; 'check' names the codes of what is wrong in its JSON"};
}

std::string subject_asked(const Invocation& call) {
  const auto& operands = call.arguments.operands();
  return operands.size() > 1 ? operands[1] : std::string{};
}

/// The current finding, acknowledged or not.
Finding finding_now(StoreSession& session, Invocation& call, Code code,
                    const std::string& subject) {
  Facts facts = ask(session, call);
  facts.acknowledged.clear();
  std::string others;
  for (Finding& finding : diagnose(facts)) {
    if (finding.code != code) continue;
    if (finding.subject == subject) return std::move(finding);
    others += (others.empty() ? "; there is " : ", ") +
              (finding.subject.empty() ? "one without a subject"
                                       : "one with '" + in_one_line(finding.subject) + "'");
  }
  throw Exit{not_found,
             "nothing is wrong by the code " + std::string{facts_of(code).word} +
                 (subject.empty() ? " without a subject" : " with '" + in_one_line(subject) + "'") +
                 others};
}

int acknowledge(Invocation& call) {
  const Code code = code_named(call.arguments.operands().front());
  const auto why = call.arguments.text("--why");
  if (!why) throw Misuse{"--why says why it may be so for a while"};
  const std::string lasts = call.arguments.text("--for").value_or("24h");
  const auto duration = parse_duration(lasts);
  if (!duration) throw Misuse{not_a_duration("--for", lasts)};
  StoreSession session{call};
  const Finding finding = finding_now(session, call, code, subject_asked(call));
  const Timestamp until = session.store().conventions().clock->now() + *duration;
  Journal journal{session.store()};
  journal.acknowledge({.code = std::string{facts_of(code).word},
                       .subject = finding.subject,
                       .severity = std::string{word_of(finding.severity)},
                       .amount = finding.amount,
                       .who = call.who(),
                       .why = *why,
                       .until = until});
  if (call.out.is_json()) {
    for (const Acknowledgement& one : journal.acknowledgements()) {
      if (one.code != facts_of(code).word || one.subject != finding.subject) continue;
      print_json(call.out, acknowledged_finding, one);
    }
    return done;
  }
  call.out.note("Known until " + to_string(until) + ", unless it gets worse: " + finding.sentence);
  return done;
}

int withdraw(Invocation& call) {
  const std::string_view word = facts_of(code_named(call.arguments.operands().front())).word;
  const std::string subject = subject_asked(call);
  StoreSession session{call};
  if (!Journal{session.store()}.withdraw(word, subject)) {
    throw Exit{not_found, "nobody has said that this is known; 'findings known' lists what is"};
  }
  if (call.out.is_json()) {
    call.out.json(to_json({{"code", word}, {"subject", subject}, {"withdrawn", true}}));
  }
  return done;
}

int show_known(Invocation& call) {
  StoreSession session{call, {.only_reads = true}};
  const auto all = Journal{session.store()}.acknowledgements();
  if (all.empty() && !call.out.is_json()) call.out.note("Nothing is known.");
  if (!all.empty()) print_list(call.out, acknowledged_finding, all);
  return done;
}

constexpr Operand code_operand{"CODE", "what is wrong: 'outbox_parked'"};
constexpr Operand subject_operand{"SUBJECT", "a partition, worker, projector or consumer", false};

}  // namespace

std::vector<Command> findings_commands() {
  return {
      {.path = "findings ack",
       .summary = "Say that a finding is known",
       .about = "'check' lists it as known, and 'check' and 'doctor' call it fine, until its time "
                "is up or it gets "
                "worse: critical, or more is parked or missing. The checks of each part, the "
                "dashboard and '/readyz' go on as before.",
       .operands = {code_operand, subject_operand},
       .options = {db_option,
                   {"--why", "TEXT", "why it may be so for a while"},
                   {"--for", "DURATION", "how long (default 24h)"}},
       .examples = {{"a consumer that is paused on purpose",
                     "findings ack consumer_paused billing --why 'moving its database' --for 2h"}},
       .run = acknowledge},
      {.path = "findings unack",
       .summary = "Let a finding count again",
       .operands = {code_operand, subject_operand},
       .options = {db_option},
       .examples = {{"it counts again", "findings unack consumer_paused billing"}},
       .run = withdraw},
      {.path = "findings known",
       .summary = "List the findings that are known, by whom and until when",
       .options = {db_option},
       .examples = {{"who knows of what", "findings known"}},
       .run = show_known}};
}

}  // namespace stela::tool
