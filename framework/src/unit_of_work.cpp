#include <stela/framework/decision.hpp>
#include <stela/framework/unit_of_work.hpp>

#include <algorithm>

namespace stela {

/// Events of a stream without an aggregate.
struct UnitOfWork::LooseStream {
  LooseStream(const Conventions& conventions, const StreamId& the_stream,
              ExpectedVersion the_expected)
      : stream{the_stream}, expected{the_expected}, encoder{conventions, stream} {}

  StreamId stream;
  ExpectedVersion expected;
  detail::EventEncoder encoder;
  /// The place of each event in the recording order.
  std::vector<std::uint64_t> order;
};

/// Events of several streams, in the order in which they were recorded.
class UnitOfWork::Batch {
 public:
  /// Returns its number. The arguments must stay valid and in place.
  std::size_t add(const StreamId& stream, ExpectedVersion expected,
                  std::span<const NewEvent> events, std::span<const std::uint64_t> order) {
    for (std::size_t i = 0; i < events.size(); ++i)
      places_.push_back({order[i], sources_.size(), i});
    sources_.push_back({.stream = stream, .expected = expected, .events = events});
    return sources_.size() - 1;
  }

  /// Consecutive events of one stream share an entry. Only the stream's first entry names the
  /// version.
  std::vector<StreamAppend> appends() {
    sort();
    std::vector<StreamAppend> all;
    std::size_t previous = sources_.size();
    for (std::size_t at = 0; at < places_.size(); ++at) {
      Source& source = sources_[places_[at].source];
      source.last_event = at;
      if (places_[at].source == previous) {
        const std::size_t count = all.back().events.size() + 1;
        all.back().events = source.events.subspan(places_[at].index + 1 - count, count);
        continue;
      }
      const bool is_first = places_[at].index == 0;
      source.last_append = all.size();
      all.push_back({source.stream, is_first ? source.expected : ExpectedVersion::any(),
                     source.events.subspan(places_[at].index, 1)});
      previous = places_[at].source;
    }
    return all;
  }

  void for_each(FunctionRef<void(const StreamId&, const NewEvent&)> f) {
    sort();
    for (const Place& place : places_) {
      f(sources_[place.source].stream, sources_[place.source].events[place.index]);
    }
  }

  StreamAppend whole(std::size_t number) const {
    const Source& source = sources_[number];
    return {source.stream, source.expected, source.events};
  }
  detail::AppendedStream result_for(std::size_t number, const AppendResult& result) const {
    const Source& source = sources_[number];
    const auto last = static_cast<std::int64_t>(source.last_event);
    return {result.versions[source.last_append], GlobalSequence{result.first.value() + last},
            result.repeated};
  }

 private:
  struct Source {
    const StreamId& stream;
    ExpectedVersion expected;
    std::span<const NewEvent> events;
    /// Positions of the source's last event and last append.
    std::size_t last_event = 0;
    std::size_t last_append = 0;
  };
  struct Place {
    std::uint64_t order;
    std::size_t source;
    std::size_t index;
  };

  void sort() {
    std::stable_sort(places_.begin(), places_.end(),
                     [](const Place& a, const Place& b) { return a.order < b.order; });
  }

  std::vector<Source> sources_;
  std::vector<Place> places_;
};

/// While it lives, nothing can be added to the unit or recorded on its aggregates.
class UnitOfWork::Committing {
 public:
  explicit Committing(UnitOfWork& unit) : unit_{unit} {
    unit.check_is_not_committing();
    unit.is_committing_ = true;
    for (const auto& tracked : unit.open()) tracked->begin_commit();
  }
  ~Committing() {
    unit_.is_committing_ = false;
    for (const auto& tracked : unit_.open()) tracked->reopen();
  }
  Committing(const Committing&) = delete;
  Committing& operator=(const Committing&) = delete;

 private:
  UnitOfWork& unit_;
};

UnitOfWork::UnitOfWork(EventLog& log) noexcept : log_{log.anchor()} {}
UnitOfWork::UnitOfWork(EventLog& log, Context context)
    : log_{log.anchor()}, context_{std::move(context)} {}
UnitOfWork::~UnitOfWork() = default;

UnitOfWork::Tracked* UnitOfWork::find_any(const StreamId& stream) const noexcept {
  const auto found = by_stream_.find(stream);
  return found != by_stream_.end() ? found->second.tracked : nullptr;
}

detail::EventEncoder& UnitOfWork::loose_stream(const StreamId& stream, ExpectedVersion expected) {
  Entry& entry = by_stream_[stream];
  if (entry.tracked != nullptr) {
    detail::refuse_saving(stream, "is in this unit of work as an aggregate; record on that");
  }
  if (entry.loose == nullptr) {
    loose_.push_back(std::make_unique<LooseStream>(log_.conventions(), stream, expected));
    entry.loose = loose_.back().get();
  } else if (!(entry.loose->expected == expected) && !expected.is_any()) {
    detail::refuse_saving(stream,
                          "is appended to with two different expected versions; in one unit of "
                          "work, later events of a stream expect what the first does, or any()");
  }
  return entry.loose->encoder;
}

void UnitOfWork::in_transaction(std::function<void(Transaction&)> work) {
  check_is_not_committing();
  work_.push_back(std::move(work));
}

void UnitOfWork::check_is_not_committing() const {
  if (!is_committing_) return;
  throw UsageError{
      "a unit of work is committed or added to while it is being committed; do that before, or "
      "afterwards"};
}

void UnitOfWork::give_up() noexcept {
  given_up_ =
      "a decision in this unit of work threw after it had recorded an event; make a new unit";
}

AppendResult UnitOfWork::commit(const SaveOptions& options) {
  if (is_lent_) {
    // The handler may catch this error; its caller must still fail.
    given_up_ =
        "a handler commits its unit of work, which is committed with the checkpoint when the "
        "handler returns; leave the commit out";
  }
  if (given_up_ != nullptr) throw UsageError{given_up_};
  const Context* const own = context_ ? &*context_ : nullptr;
  return detail::in_context(options.context != nullptr ? options.context : own,
                            [&] { return commit_in_scope(options.append_id); });
}

AppendResult UnitOfWork::commit_in_scope(std::string_view append_id) {
  const Committing committing{*this};
  Batch batch;
  std::vector<detail::EventEncoder> encoders;
  std::vector<Tracked*> changed;
  encoders.reserve(open().size());
  for (const auto& tracked : open()) {
    detail::EventEncoder encoder{log_.conventions(), tracked->stream()};
    tracked->encode(log_, encoder);
    tracked->encoded = encoder.events().size();
    if (encoder.events().empty()) continue;
    encoders.push_back(std::move(encoder));
    changed.push_back(tracked.get());
    batch.add(tracked->stream(), ExpectedVersion::exactly(tracked->save.before),
              encoders.back().events(), tracked->order());
  }
  for (const auto& loose : loose_) {
    batch.add(loose->stream, loose->expected, loose->encoder.events(), loose->order);
  }
  std::vector<StreamAppend> appends = batch.appends();
  for (const auto& tracked : open()) {
    if (!tracked->is_required || tracked->encoded > 0) continue;
    appends.push_back({tracked->stream(), ExpectedVersion::exactly(tracked->save.before), {}});
  }

  AppendResult result;
  const bool has_condition = !condition_.query.items.empty();
  try {
    result = append_and_work({.streams = appends,
                              .append_id = append_id,
                              .condition = has_condition ? &condition_ : nullptr});
  } catch (const CommitInDoubt&) {
    for (Tracked* const tracked : changed) tracked->set_in_doubt(log_);
    throw;
  }
  for (std::size_t i = 0; i < changed.size(); ++i) {
    changed[i]->note_commit(log_, batch.whole(i), batch.result_for(i, result));
  }
  begin_anew();
  return result;
}

void UnitOfWork::begin_anew() noexcept {
  for (const auto& tracked : open()) tracked->close();
  committed_ = tracked_.size();
  loose_.clear();
  by_stream_.clear();
  work_.clear();
  position_.reset();
  condition_ = {};
}

const Standpoint& UnitOfWork::position() {
  if (!position_) stand_at(log_.standpoint());
  return *position_;
}

void UnitOfWork::stand_at(const Standpoint& now) {
  if (!position_) {
    position_ = now;
    condition_.after = now.head;
    condition_.tag_epoch = now.tag_epoch;
    condition_.store = now.store;
  }
  depend_on(now.outcome);
}

DecisionAnswer UnitOfWork::ask(std::span<const TagNeed> needs,
                               std::span<const DecisionQuestion::Part> parts) {
  DecisionQuestion question{.needs = needs, .parts = parts};
  if (position_) {
    question.up_to = position_->head;
  } else {
    question.append_id = decides_under_;
  }
  DecisionAnswer answer = log_.answer(question);
  decided_before_ = answer.appended;
  if (!answer.appended) stand_at(answer.standpoint);
  return answer;
}

void UnitOfWork::depend_on(const std::shared_ptr<const TransactionOutcome>& outcome) {
  using State = TransactionOutcome::State;
  if (!outcome) return;
  // A later outcome includes an earlier one, unless that was rolled back.
  const State before = condition_.outcome ? condition_.outcome->state() : State::committed;
  if (before == State::open || before == State::committed) condition_.outcome = outcome;
}

void UnitOfWork::depend_on(QueryItem item) {
  position();
  condition_.query.items.push_back(std::move(item));
}

std::size_t UnitOfWork::count_pending() const {
  std::size_t count = 0;
  for (const auto& loose : loose_) count += loose->order.size();
  for (const auto& tracked : open()) count += tracked->recorded();
  return count;
}

void UnitOfWork::note_loose(const StreamId& stream) {
  LooseStream& loose = *by_stream_.find(stream)->second.loose;
  loose.order.resize(loose.encoder.events().size(), detail::next_in_order());
}

void detail::UnitAccess::for_each_pending(UnitOfWork& unit,
                                          FunctionRef<void(const StoredEvent&)> f) {
  UnitOfWork::Batch batch;
  std::vector<EventEncoder> encoders;
  encoders.reserve(unit.open().size());
  for (const auto& tracked : unit.open()) {
    if (tracked->recorded() == 0) continue;
    encoders.emplace_back(unit.log_.conventions(), tracked->stream());
    tracked->encode_pending(encoders.back());
    batch.add(tracked->stream(), ExpectedVersion::any(), encoders.back().events(),
              tracked->order());
  }
  for (const auto& loose : unit.loose_) {
    batch.add(loose->stream, loose->expected, loose->encoder.events(), loose->order);
  }
  const Timestamp now = unit.log_.conventions().clock->now();
  batch.for_each([&](const StreamId& stream, const NewEvent& event) {
    const EventKind kind{0, std::string{event.type}, event.schema_version, event.publishes};
    const std::string tags = join_tags(event.tags, stream);
    f({.sequence = {},
       .stream = stream,
       .version = {},
       .kind = kind,
       .id = {},
       .recorded_at = now,
       .correlation = {},
       .causation_id = {},
       .metadata = {},
       .published_before = {},
       .payload = event.payload,
       .tags = tags});
  });
}

AppendResult UnitOfWork::append_and_work(const AppendRequest& request) {
  // An append id is stored even if the unit has no events but only work.
  const bool appends =
      !request.streams.empty() || !request.append_id.empty() || request.condition != nullptr;
  if (work_.empty()) return appends ? log_.append(request) : AppendResult{};
  AppendResult result;
  log_.transact([&](Transaction& transaction) {
    if (appends) result = transaction.append(request);
    if (result.repeated) return;
    for (const auto& work : work_) work(transaction);
    check_nothing_was_recorded_since();
  });
  return result;
}

void UnitOfWork::check_nothing_was_recorded_since() const {
  for (const auto& tracked : open()) {
    if (tracked->recorded() == tracked->encoded) continue;
    detail::refuse_saving(
        tracked->stream(),
        "recorded an event inside the transaction of its unit, which has appended "
        "its events already; record it before the commit");
  }
}

}  // namespace stela
