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

UnitOfWork::UnitOfWork(EventLog& log) noexcept : log_{log} {}
UnitOfWork::~UnitOfWork() = default;

UnitOfWork::Tracked* UnitOfWork::find_any(const StreamId& stream) const noexcept {
  for (const auto& tracked : tracked_) {
    if (tracked->stream() == stream) return tracked.get();
  }
  return nullptr;
}

detail::EventEncoder& UnitOfWork::loose_stream(const StreamId& stream, ExpectedVersion expected) {
  if (find_any(stream) != nullptr) {
    detail::refuse_saving(stream, "is in this unit of work as an aggregate; record on that");
  }
  for (const auto& loose : loose_) {
    if (loose->stream != stream) continue;
    if (!(loose->expected == expected)) {
      detail::refuse_saving(stream, "is appended to with two different expected versions");
    }
    return loose->encoder;
  }
  loose_.push_back(std::make_unique<LooseStream>(log_.conventions(), stream, expected));
  return loose_.back()->encoder;
}

void UnitOfWork::in_transaction(std::function<void(Transaction&)> work) {
  work_.push_back(std::move(work));
}

AppendResult UnitOfWork::commit(const SaveOptions& options) {
  std::vector<detail::EventEncoder> encoders;
  std::vector<Tracked*> changed;
  encoders.reserve(tracked_.size());
  for (const auto& tracked : tracked_) {
    detail::EventEncoder encoder{log_.conventions(), tracked->stream()};
    tracked->encode(encoder);
    if (encoder.events().empty()) continue;
    encoders.push_back(std::move(encoder));
    changed.push_back(tracked.get());
  }

  std::vector<StreamAppend> appends;
  for (std::size_t i = 0; i < changed.size(); ++i) {
    appends.push_back({changed[i]->stream(), ExpectedVersion::exactly(changed[i]->version()),
                       encoders[i].events()});
  }
  for (const auto& loose : loose_) {
    appends.push_back({loose->stream, loose->expected, loose->encoder.events()});
  }

  AppendResult result;
  const AppendRequest request{.streams = appends, .append_id = options.append_id};
  if (work_.empty()) {
    if (!appends.empty()) result = log_.append(request);
  } else {
    log_.transact([&](Transaction& transaction) {
      if (!appends.empty()) result = transaction.append(request);
      if (result.repeated) return;
      for (const auto& work : work_) work(transaction);
    });
  }

  for (std::size_t i = 0; i < changed.size(); ++i) {
    changed[i]->saved(log_, result.versions[i], result.last);
  }
  tracked_.clear();
  loose_.clear();
  work_.clear();
  return result;
}

}  // namespace stela
