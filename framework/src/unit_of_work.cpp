#include <stela/framework/unit_of_work.hpp>

namespace stela {

/// Events of a stream without an aggregate.
struct UnitOfWork::LooseStream {
  LooseStream(const Conventions& conventions, const StreamId& the_stream,
              ExpectedVersion the_expected)
      : stream{the_stream}, expected{the_expected}, encoder{conventions, stream} {}

  StreamId stream;
  ExpectedVersion expected;
  detail::EventEncoder encoder;
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

AppendResult UnitOfWork::commit(const SaveOptions& options) {
  const Committing committing{*this};
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
  }

  std::vector<StreamAppend> appends;
  for (std::size_t i = 0; i < changed.size(); ++i) {
    appends.push_back({changed[i]->stream(), ExpectedVersion::exactly(changed[i]->save.before),
                       encoders[i].events()});
  }
  for (const auto& loose : loose_) {
    appends.push_back({loose->stream, loose->expected, loose->encoder.events()});
  }
  for (const auto& tracked : open()) {
    if (!tracked->is_required || tracked->encoded > 0) continue;
    appends.push_back({tracked->stream(), ExpectedVersion::exactly(tracked->save.before), {}});
  }

  AppendResult result;
  try {
    result = append_and_work({.streams = appends, .append_id = options.append_id});
  } catch (const CommitInDoubt&) {
    for (Tracked* const tracked : changed) tracked->set_in_doubt();
    throw;
  }
  std::int64_t next = result.first.value();
  for (std::size_t i = 0; i < changed.size(); ++i) {
    next += static_cast<std::int64_t>(changed[i]->encoded);
    changed[i]->note_commit(log_, appends[i],
                            {result.versions[i], GlobalSequence{next - 1}, result.repeated});
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
}

AppendResult UnitOfWork::append_and_work(const AppendRequest& request) {
  // An id is kept even if it stands for nothing but the work.
  const bool appends = !request.streams.empty() || !request.append_id.empty();
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
