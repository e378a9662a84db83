// The looking at a store, on any engine: what its checks ask, and how they say what they found.
#pragma once

#include "database/event_reader.hpp"
#include "database/inspection.hpp"

#include <stela/framework/detail/function_ref.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::care {

/// How an engine stores, and what it calls its parts.
struct Engine {
  /// Where a problem is that is in no table.
  std::string_view whole;
  /// What begins its answer about events that it can't read.
  std::string_view unreadable;
  /// What its index of versions has, and how many events there are; advice if it has too few, and
  /// if it has too many.
  std::string_view versions;
  std::string_view few_versions_advice;
  std::string_view many_versions_advice;

  std::int64_t (*append_id_checksum)(std::string_view id, std::int64_t first, std::int64_t last);
  std::int64_t (*tags_checksum)(std::string_view tags, std::int64_t sequence, std::int64_t part);
};

/// Threads: one at a time.
class Inspection : public database::Inspection {
 public:
  Inspection(const Engine& engine, FunctionRef<void(const Problem&)> report,
             const VerifyOptions& options)
      : engine_{engine}, report_{report}, options_{options} {}

  /// Makes one check, to its end or until it has found too much.
  void run(std::string_view name, FunctionRef<void()> check);
  void run(IntegrityCheck& check);
  /// The check of links, and those of other modules.
  void run_common_checks();

  bool read(database::Database::Work work) final;
  /// As `read`, but returns what went wrong.
  std::optional<std::string> try_read(database::Database::Work work);

  void report(std::string where, std::string what, std::string advice) override;
  void report(std::string where, std::string what) final;
  /// It isn't a problem: the caller finds it in the result, once for each name.
  void leave_unchecked(std::string name, std::string why);
  void progress(std::int64_t done, std::int64_t total) final;

  /// One that knows no kinds and no names yet, so that they come from the database.
  virtual std::unique_ptr<database::EventReader> make_reader() = 0;

  const Engine& engine() const noexcept { return engine_; }
  const VerifyOptions& options() const noexcept { return options_; }
  VerifyResult& result() noexcept { return result_; }

 private:
  struct EndOfCheck {};

  /// StoreFailed if what is looked at isn't the store any more.
  virtual void check_place() {}
  /// Runs `work` in a read transaction.
  virtual void attempt(database::Database::Work work) = 0;
  virtual std::string advice_on_damage() = 0;
  void hand_out();

  const Engine& engine_;
  FunctionRef<void(const Problem&)> report_;
  const VerifyOptions& options_;
  std::string_view check_;
  std::int64_t problems_of_check_ = 0;
  std::vector<Problem> found_;
  VerifyResult result_;
};

}  // namespace stela::care
