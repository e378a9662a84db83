#include "description/outbox.hpp"

#include "cli/text.hpp"
#include "commands/outbox_text.hpp"

#include <algorithm>
#include <chrono>

namespace stela::tool {

std::string broker_place_of(const OutboxMessage& message) {
  if (message.broker_from == 0) return {};
  const std::string from = "#" + std::to_string(message.broker_from);
  if (message.broker_from == message.broker_to) return from;
  return "between " + from + " and #" + std::to_string(message.broker_to);
}

namespace {

using std::chrono::microseconds;

constexpr Look how_many{.kind = Kind::count};

std::optional<microseconds> age_of(const PartitionIn& in) {
  if (!in.partition.waiting_since) return std::nullopt;
  return std::max(in.outbox.at - *in.partition.waiting_since, microseconds{0});
}

std::string state_of(const PartitionStatus& partition, const OutboxStatus& status) {
  if (partition.stopped) return "stopped: " + word_of(partition.stopped);
  if (partition.attempts > 0) return "backing off: " + partition.last_error;
  if (partition.flight_age && *partition.flight_age > quiet_flight) {
    return silence_in_words(*partition.flight_age);
  }
  if (std::string obstacle = obstacle_of(partition, status); !obstacle.empty()) return obstacle;
  if (!partition.is_current) return waiting_in(partition) == 0 ? "drained" : "draining";
  return "ok";
}

std::string facts_of(const OutboxStatus& status) {
  std::string facts{"fence "};
  facts.append(to_string(status.fence)).append(", ");
  facts += counted(status.partition_count, "partition");
  facts.append(" by ").append(status.partitioner);
  return facts.append(status.leasing ? ", leasing on" : ", leasing off");
}

constexpr Metric messages_in(std::string_view state) {
  return {.name = "stela_outbox_messages",
          .help =
              "Messages that aren't published, by state; pending has those in flight and retrying, "
              "and 10000 of each partition at most.",
          .label = "state",
          .label_value = state};
}

/// A member of the partition itself.
template <auto member>
constexpr auto outbox_field(std::string_view name, const Look& look = {}) {
  return field<[](const PartitionIn& in) { return in.partition.*member; }>(name, look);
}

constexpr Field<PartitionIn> partition_fields[] = {
    outbox_field<&PartitionStatus::id>("partition"),
    outbox_field<&PartitionStatus::owner>("owner", {.absent = "-"}),
    outbox_field<&PartitionStatus::epoch>("epoch"),
    field<[](const PartitionIn& in) {
      const PartitionStatus& partition = in.partition;
      return partition.owner.empty() ? std::nullopt : std::optional{partition.lease_left};
    }>("lease_left_s", {.title = "lease", .absent = "-"}),
    outbox_field<&PartitionStatus::is_current>("is_current"),
    outbox_field<&PartitionStatus::pending>("pending"),
    outbox_field<&PartitionStatus::is_pending_lower_bound>("pending_is_lower_bound"),
    outbox_field<&PartitionStatus::in_flight>("in_flight", how_many),
    outbox_field<&PartitionStatus::retrying>("retrying", how_many),
    outbox_field<&PartitionStatus::redeliveries>("redeliveries"),
    outbox_field<&PartitionStatus::parked>("parked", how_many),
    outbox_field<&PartitionStatus::discarded>("discarded"),
    outbox_field<&PartitionStatus::published>("published", how_many),
    outbox_field<&PartitionStatus::published_through>("published_through"),
    outbox_field<&PartitionStatus::broker_sequence>("broker_sequence"),
    outbox_field<&PartitionStatus::attempts>("attempts"),
    outbox_field<&PartitionStatus::last_error>("error"),
    outbox_field<&PartitionStatus::failure>("failure_class"),
    field<[](const PartitionIn& in) { return word_of(in.partition.stopped); }>("stopped"),
    outbox_field<&PartitionStatus::stopped_detail>("stopped_detail"),
    outbox_field<&PartitionStatus::flight_age>("flight_age_s"),
    outbox_field<&PartitionStatus::oldest>("oldest"),
    outbox_field<&PartitionStatus::oldest_recorded_at>("oldest_recorded_at"),
    outbox_field<&PartitionStatus::waiting_since>("waiting_since_at"),
    outbox_field<&PartitionStatus::next_attempt_at>("next_attempt_at"),
    field<[](const PartitionIn& in) { return waiting_in_words(in.partition); }>(
        "waiting", {.title = "pending", .kind = Kind::count, .is_text_only = true}),
    field<[](const PartitionIn& in) { return waiting_in(in.partition); }>(
        "counted", {.is_text_only = true,
                    .metric = {.name = "stela_outbox_partition_pending",
                               .help = "Messages that wait, by partition; of the pending ones, "
                                       "10000 at most."}}),
    field<age_of>("age", {.title = "oldest",
                          .absent = "-",
                          .is_text_only = true,
                          .metric = {.name = "stela_outbox_partition_lag_seconds",
                                     .help = "Age of the oldest pending message, by "
                                             "partition."}}),
    field<[](const PartitionIn& in) { return state_of(in.partition, in.outbox); }>(
        "state", {.most = 24, .is_text_only = true}),
};

constexpr Field<WorkerStatus> worker_fields[] = {
    field<&WorkerStatus::name>("worker"),
    field<&WorkerStatus::host>("host"),
    field<&WorkerStatus::pid>("pid"),
    field<&WorkerStatus::started_at>("started_at", {.title = "started"}),
    field<&WorkerStatus::heartbeat_until>("heartbeat_until_at", {.title = "heartbeat until"}),
    field<&WorkerStatus::is_alive>("is_alive"),
    field<&WorkerStatus::partitions>("partitions"),
    field<[](const WorkerStatus& worker) {
      return worker.broker ? std::optional{worker.broker->state} : std::nullopt;
    }>("broker"),
    field<[](const WorkerStatus& worker) {
      return worker.broker ? worker.broker->detail : std::string{};
    }>("broker_error", {.kind = Kind::untrusted}),
    field<[](const WorkerStatus& worker) {
      return worker.broker ? to_string(*worker.broker) : std::string{};
    }>("broker_line", {.title = "broker", .most = 24, .is_text_only = true}),
    field<&WorkerStatus::is_cut_off>("is_cut_off"),
    field<life_of>("alive", {.most = 24, .is_text_only = true}),
};

constexpr Field<GenerationStatus> generation_fields[] = {
    field<&GenerationStatus::number>("generation"),
    field<&GenerationStatus::first_sequence>("first_sequence"),
    field<&GenerationStatus::partition_count>("partition_count"),
    field<&GenerationStatus::is_drained>("is_drained"),
};
constexpr Description<GenerationStatus> generation{generation_fields};

using S = OutboxStatus;
constexpr Field<OutboxStatus> status_fields[] = {
    field<&S::fence>("fence"),
    field<&S::leasing>("leasing"),
    field<&S::partitioner>("partitioner"),
    field<&S::partition_count>("partition_count"),
    field<&S::pending>("pending", {.metric = messages_in("pending")}),
    field<&S::is_pending_lower_bound>("pending_is_lower_bound"),
    field<&S::in_flight>("in_flight", {.kind = Kind::count, .metric = messages_in("in_flight")}),
    field<&S::retrying>("retrying", {.kind = Kind::count, .metric = messages_in("retrying")}),
    field<&S::redeliveries>("redeliveries", {.metric = messages_in("redelivery")}),
    field<&S::parked>("parked", {.kind = Kind::count, .metric = messages_in("parked")}),
    field<&S::discarded>("discarded", {.kind = Kind::count, .metric = messages_in("discarded")}),
    field<&S::published>("published", {.kind = Kind::count,
                                       .metric = {.name = "stela_outbox_published_total",
                                                  .type = "counter",
                                                  .help = "Messages published, by all workers."}}),
    field<&S::stopped>("stopped", {.metric = {.name = "stela_outbox_partitions_stopped",
                                              .help = "Partitions that wait for an operator."}}),
    field<&S::lag>("lag_s", {.title = "lag",
                             .absent = "none",
                             .metric = {.name = "stela_outbox_lag_seconds",
                                        .help = "Age of the oldest pending message."}}),
    field<[](const S& status) { return json_list(description::partition, partitions_of(status)); }>(
        "partitions"),
    field<[](const S& status) { return json_list(description::worker, status.workers); }>(
        "workers"),
    field<[](const S& status) { return json_list(generation, status.generations); }>("generations"),
    field<facts_of>("outbox", {.is_text_only = true}),
    field<[](const S& status) { return waiting_in_words(status); }>(
        "waiting", {.title = "pending", .kind = Kind::count, .is_text_only = true}),
};

using M = OutboxMessage;
constexpr Field<OutboxMessage> message_fields[] = {
    field<&M::sequence>("sequence"),
    field<&M::state>("state"),
    field<&M::partition>("partition"),
    field<&M::stream>("stream"),
    field<&M::version>("stream_version"),
    field<&M::event_id>("id"),
    field<&M::type>("type"),
    field<&M::recorded_at>("recorded_at"),
    field<&M::attempts>("attempts"),
    field<[](const M& message) { return word_of(message.reason); }>("reason", {.most = 9}),
    field<&M::last_error>("error", {.kind = Kind::untrusted, .most = 60}),
    field<&M::failure>("failure_class", {.title = "class"}),
    field<[](const M& message) { return unless_empty(message.redelivery); }>("redelivery"),
    field<&M::next_attempt_at>("next_attempt_at", {.title = "next attempt"}),
    field<&M::since>("since_at", {.title = "since"}),
    field<[](const M& message) { return unless_empty(message.broker_from); }>("broker_from"),
    field<[](const M& message) { return unless_empty(message.broker_to); }>("broker_to"),
    field<[](const M& message) { return broker_place_of(message); }>(
        "broker", {.title = "at the broker", .is_text_only = true}),
    field<[](const M& message) {
      return message.stream + " at version " + std::to_string(message.version.value());
    }>("place", {.title = "stream", .is_text_only = true}),
};

Json numbers_of(const std::vector<GlobalSequence>& sequences) {
  return json_list(sequences, [](GlobalSequence each) { return std::to_string(each.value()); });
}

Json labels_in_json(const std::vector<PartitionId>& partitions) {
  return json_list(partitions, [](PartitionId each) { return '"' + each.label() + '"'; });
}

constexpr Field<Affected> affected_fields[] = {
    field<&Affected::messages>("messages"),   field<&Affected::streams>("streams"),
    field<&Affected::followers>("followers"), field<&Affected::changed>("changed"),
    field<&Affected::next>("next"),
};

constexpr Field<ParkedRun> parked_run_fields[] = {
    field<&ParkedRun::stream>("stream", {.kind = Kind::untrusted}),
    field<&ParkedRun::head>("sequence"),
    field<&ParkedRun::parked_at>("parked_at"),
    field<&ParkedRun::messages>("messages"),
    field<&ParkedRun::last>("last"),
    field<&ParkedRun::error>("error", {.kind = Kind::untrusted, .most = 60}),
};

constexpr Field<AppliedPlan> applied_plan_fields[] = {
    field<&AppliedPlan::messages>("messages"),
    field<&AppliedPlan::streams>("streams"),
    field<&AppliedPlan::joined>("joined"),
    field<&AppliedPlan::messages_changed>("changed"),
    field<[](const AppliedPlan& applied) {
      return json_list(applied.changed, [](const ChangedRun& run) {
        return to_json({{"stream", run.planned.stream},
                        {"sequence", run.planned.head().value()},
                        {"why", run.why}});
      });
    }>("left_alone"),
};

constexpr Field<FailureGroup> failure_group_fields[] = {
    field<&FailureGroup::group>("group", {.absent = "older"}),
    field<&FailureGroup::streams>("streams"),
    field<[](const FailureGroup& group) { return group.sample.type; }>("type"),
    field<[](const FailureGroup& group) { return word_of(group.sample.reason); }>("reason"),
    field<[](const FailureGroup& group) { return group.sample.failure; }>("failure_class",
                                                                          {.title = "class"}),
    field<&FailureGroup::first_at>("first_at", {.title = "first"}),
    field<&FailureGroup::last_at>("last_at", {.title = "last"}),
    field<[](const FailureGroup& group) { return group.sample.sequence; }>("sample"),
    field<[](const FailureGroup& group) { return group.sample.last_error; }>(
        "error", {.kind = Kind::untrusted, .most = 60}),
};

constexpr Field<Compared> compared_fields[] = {
    field<&Compared::checked>("checked"),
    field<&Compared::found>("found"),
    field<&Compared::missing>("missing"),
    field<&Compared::dropped>("dropped"),
    field<&Compared::unknown>("unknown"),
    field<&Compared::foreign>("foreign"),
    field<[](const Compared& found) { return numbers_of(found.examples); }>("examples"),
};

std::string_view word_of_fit(Fit fit) noexcept {
  switch (fit) {
    case Fit::fits:
      return "fits";
    case Fit::gap:
      return "gap";
    case Fit::other_history:
      return "other_history";
    case Fit::after_misfit:
      return "after_misfit";
    case Fit::other_store:
      return "other_store";
    case Fit::other_codec:
      return "other_codec";
    case Fit::tagged:
      return "tagged";
    case Fit::unreadable:
      return "unreadable";
  }
  return "unreadable";
}

constexpr Field<StrayEvent> stray_event_fields[] = {
    field<&StrayEvent::stream>("stream", {.kind = Kind::untrusted}),
    field<[](const StrayEvent& event) { return unless_empty(event.version.value()); }>(
        "stream_version", {.title = "version"}),
    field<&StrayEvent::type>("type", {.kind = Kind::untrusted}),
    field<[](const StrayEvent& event) {
      return event.id.is_nil() ? std::string{} : event.id.to_string();
    }>("id"),
    field<[](const StrayEvent& event) {
      return event.stream.empty() ? std::optional<Timestamp>{} : event.recorded_at;
    }>("recorded_at"),
    field<&StrayEvent::broker_stream>("broker_stream", {.kind = Kind::untrusted}),
    field<&StrayEvent::broker_sequence>("broker_sequence"),
    field<[](const StrayEvent& event) {
      return event.broker_stream + " #" + std::to_string(event.broker_sequence);
    }>("broker", {.title = "at the broker", .is_text_only = true}),
    field<[](const StrayEvent& event) { return word_of_fit(event.fit); }>("fit"),
    field<&StrayEvent::why>("why", {.kind = Kind::untrusted, .most = 60}),
};

constexpr Field<AppliedImport> applied_import_fields[] = {
    field<&AppliedImport::imported>("imported"),
    field<&AppliedImport::streams>("streams"),
    field<&AppliedImport::changed>("changed"),
    field<[](const AppliedImport& applied) {
      return json_list(description::stray_event, applied.examples);
    }>("examples"),
    field<&AppliedImport::finished>("finished"),
};

constexpr Field<Purged> purged_fields[] = {
    field<&Purged::batches>("batches"),
    field<&Purged::actions>("actions"),
};

constexpr Field<Reconciled> reconciled_fields[] = {
    field<&Reconciled::checked>("checked"),
    field<&Reconciled::missing>("missing"),
    field<[](const Reconciled& found) { return numbers_of(found.examples); }>("examples"),
    field<&Reconciled::miscounted>("miscounted"),
};

constexpr Field<Resized> resized_fields[] = {
    field<&Resized::before>("before"),
    field<&Resized::after>("after"),
    field<[](const Resized& resized) { return unless_empty(resized.generation); }>("generation"),
};

constexpr Field<Synced> synced_fields[] = {
    field<[](const Synced& synced) { return labels_in_json(synced.added); }>("added"),
    field<[](const Synced& synced) { return labels_in_json(synced.retired); }>("retired"),
    field<[](const Synced& synced) { return labels_in_json(synced.parked); }>("parked"),
};

}  // namespace

std::string labels_of(const std::vector<PartitionId>& partitions) {
  std::string text;
  for (const PartitionId each : partitions) {
    text.append(text.empty() ? "" : " ").append(each.label());
  }
  return text;
}

std::vector<PartitionIn> partitions_of(const OutboxStatus& status) {
  std::vector<PartitionIn> partitions;
  for (const PartitionStatus& each : status.partitions) partitions.push_back({each, status});
  return partitions;
}

namespace description {

// In a table, the most important columns come first: narrow terminals cut off the rest.
constexpr Description<OutboxStatus> outbox_status{
    status_fields,
    {.sheet = "outbox waiting in_flight retrying parked discarded published lag_s",
     .metrics =
         "lag_s pending in_flight retrying redeliveries parked discarded published stopped"}};
constexpr Description<PartitionIn> partition{
    partition_fields,
    {.table =
         "partition waiting age state in_flight retrying parked owner lease_left_s published"}};
constexpr Description<WorkerStatus> worker{
    worker_fields,
    {.table = "worker alive broker_line partitions heartbeat_until_at started_at pid host"}};
constexpr Description<OutboxMessage> message{
    message_fields,
    {.table = "sequence state reason failure_class partition stream type recorded_at attempts "
              "error",
     .sheet = "sequence state partition place type id recorded_at attempts since_at broker "
              "next_attempt_at redelivery reason failure_class error"}};

constexpr Description<Affected> affected{affected_fields};
constexpr Description<ParkedRun> parked_run{
    parked_run_fields, {.table = "stream sequence parked_at messages last error"}};
constexpr Description<AppliedPlan> applied_plan{applied_plan_fields};
constexpr Description<FailureGroup> failure_group{
    failure_group_fields,
    {.table = "group streams type reason failure_class first_at last_at sample error"}};
constexpr Description<Compared> compared{compared_fields};
constexpr Description<StrayEvent> stray_event{
    stray_event_fields, {.table = "stream stream_version fit type broker id why"}};
constexpr Description<AppliedImport> applied_import{applied_import_fields};
constexpr Description<Purged> purged{purged_fields};
constexpr Description<Reconciled> reconciled{reconciled_fields};
constexpr Description<Resized> resized{resized_fields};
constexpr Description<Synced> synced{synced_fields};

}  // namespace description
}  // namespace stela::tool
