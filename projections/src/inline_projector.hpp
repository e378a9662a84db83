// A projector that takes part in appends.
#pragma once

#include "database/transaction.hpp"
#include "feed.hpp"
#include "seat.hpp"

#include <stela/projections/projections.hpp>

#include <memory>
#include <optional>
#include <string>

namespace stela {

/// Threads: the store's calls come on the thread that leads its transaction.
class Projections::InlineProjector final : public TransactionParticipant {
 public:
  /// Brings the tables up to date or creates new ones, then attaches itself.
  InlineProjector(Store& store, const detail::Registration& registration,
                  const InlineOptions& options);
  ~InlineProjector() override;

  std::string_view name() const noexcept override { return name_; }
  std::string_view detail() const noexcept override {
    return seat_->build.version == registration_.version ? detail_ : detail_before_;
  }
  bool accepts(std::string_view recorded) const noexcept override {
    return recorded == detail_ || (registration_.before && recorded == detail_before_);
  }
  void on_append(Transaction& transaction, std::span<const StoredEvent> events) override;
  void forget() noexcept override;

 private:
  /// Null if this process lacks that version.
  const detail::Registration* find_version(int version) const noexcept;
  void choose_build(database::Connection& connection, bool rebuild);
  /// False if another process is catching it up.
  bool catch_up();
  bool is_free(const projections::Build& build) const;
  /// LeaseLost if another process takes over.
  void project_missing();
  void let_go() noexcept;
  /// Waits until the process that catches it up is done or gone. StoreBusy if there is no progress.
  void wait_for_other();
  std::optional<projections::Build> read_build();
  /// Chooses a build again after a wait.
  void choose_again(database::Connection& connection, bool rebuild);
  void prepare(database::Connection& connection);
  bool advance(database::Connection& connection, std::int64_t from, std::int64_t to);
  void project(database::Connection& connection, std::span<const StoredEvent> events);
  void switch_build(database::Connection& connection, std::int64_t position);

  Store& store_;
  const detail::Registration registration_;
  const std::string name_;
  const std::string detail_;
  const std::string detail_before_;
  projections::Feed feed_;
  std::unique_ptr<projections::Seat> seat_;
};

}  // namespace stela
