// Findings about the broker and its streams, from the broker's answers.
#include "cli/text.hpp"
#include "commands/outbox_text.hpp"
#include "diagnosis/findings.hpp"

#include <algorithm>

namespace stela::tool {
namespace {

constexpr double nearly_full = 0.9;

std::string way_to_a_stream(const std::optional<Answer>& answer, const std::string& call) {
  const std::string way = way_to_mend(call, answer ? std::optional{answer->failure} : std::nullopt);
  return way.empty() ? "check the broker's log, and this user's permissions there" : way;
}

/// It is more severe if no worker reaches the broker either.
Severity severity_of_silence(const OutboxStatus& status) {
  const LivingWorkers living = living_workers(status);
  return living.all > living.cut_off ? Severity::warning : Severity::critical;
}

Finding describe_unreached(const BrokerLook& broker, const OutboxStatus& status) {
  const std::string answer = broker.connected ? in_one_line(broker.connected->detail) : "no answer";
  const bool refuses = broker.connected && broker.connected->kind == Answer::Kind::misconfigured;
  return {.code = Code::broker_unreached,
          .severity = severity_of_silence(status),
          .trouble = "broker unreached",
          .sentence = "the broker at " + in_one_line(broker.url) + " can't be asked: " + answer,
          .remedy = refuses ? "it answers and refuses: correct the credentials (nats.user, "
                              "nats.password_file and the like), or the TLS settings"
                            : "start it, or correct nats.url; messages stay pending, none is lost"};
}

/// If a stream keeps old messages, only an operator can have removed any.
void judge_limits(const std::string& label, std::uint64_t known_first, const Answer& answer,
                  const Facts& facts, Findings& findings) {
  if (answer.first_sequence > known_first && !answer.drops_old) {
    findings.add({.code = Code::stream_purged,
                  .subject = label,
                  .amount = static_cast<std::int64_t>(answer.first_sequence),
                  .trouble = "stream purged",
                  .sentence = "partition " + label + ": its stream begins at message " +
                              std::to_string(answer.first_sequence) +
                              " and drops nothing by itself: somebody purged it, or deleted "
                              "messages",
                  .remedy = "'" + facts.call +
                            "outbox reconcile --against-broker --dry-run' says what is missing, "
                            "and '" +
                            facts.call + "outbox reconcile --against-broker' sends it again"});
  }
  if (answer.fullness < nearly_full) return;
  findings.add({.code = Code::stream_nearly_full,
                .subject = label,
                .trouble = "stream nearly full",
                .sentence = "partition " + label + ": its stream is " +
                            std::to_string(static_cast<int>(100 * answer.fullness)) + " % full",
                .remedy = answer.limit +
                          ": raise it before it is reached, then no message is published until it "
                          "is raised"});
}

void judge_stream(const PartitionStatus& partition, const std::optional<Answer>& answer,
                  const Facts& facts, Findings& findings) {
  const std::string label = partition.id.label();
  if (answer && is_to_be_made(partition, *answer)) return;
  if (!answer || answer->kind != Answer::Kind::read_back) {
    return findings.add(
        {.code = Code::stream_unfit,
         .subject = label,
         .trouble = "stream unfit",
         .sentence = "partition " + label + ": " +
                     (answer ? in_one_line(answer->detail) : "no answer of its stream"),
         .remedy = way_to_a_stream(answer, facts.call)});
  }
  judge_limits(label, partition.broker_first, *answer, facts, findings);
  // A worker that noticed the loss has stopped the partition.
  if (partition.stopped || answer->last_sequence >= partition.broker_sequence) return;
  findings.add(
      {.code = Code::stream_shorter,
       .subject = label,
       .trouble = "stream shorter",
       .sentence = "partition " + label + ": its stream ends at " +
                   std::to_string(answer->last_sequence) +
                   ", before what was published: " + std::to_string(partition.broker_sequence),
       .remedy = "the stream was re-created or restored: once a worker has stopped the "
                 "partition, '" +
                 facts.call + "outbox partitions adopt " + label + "', then " +
                 way_to_send_again(facts.call)});
}

}  // namespace

bool is_to_be_made(const PartitionStatus& partition, const Answer& answer) noexcept {
  return answer.failure == FailureClass::stream_missing && partition.broker_sequence == 0;
}

void judge_broker(const BrokerLook& broker, const OutboxStatus& status, const Facts& facts,
                  Findings& findings) {
  if (!broker.is_connected()) return findings.add(describe_unreached(broker, status));
  for (const StreamLook& stream : broker.streams) {
    const auto partition =
        std::find_if(status.partitions.begin(), status.partitions.end(),
                     [&](const PartitionStatus& each) { return each.id == stream.partition; });
    if (partition != status.partitions.end()) {
      judge_stream(*partition, stream.answer, facts, findings);
    }
  }
}

}  // namespace stela::tool
