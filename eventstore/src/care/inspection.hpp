// The inspection of a store, on any engine: how checks read it and report problems.
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

/// An engine's terms and checksums.
struct Engine {
  /// The place of a problem outside any table.
  std::string_view whole;
  /// The beginning of the engine's error about unreadable events.
  std::string_view unreadable;
  /// The problem when the index of versions and the events differ in number; advice if the index
  /// has too few entries, and if it has too many.
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

  /// Runs one check, until it ends or has found too many problems.
  void run(std::string_view name, FunctionRef<void()> check);
  void run(IntegrityCheck& check);
  /// The check of links, and those of other modules.
  void run_common_checks();

  bool read(database::Database::Work work) final;
  /// As `read`, but returns the error.
  std::optional<std::string> try_read(database::Database::Work work);

  void report(std::string where, std::string what, std::string advice) override;
  void report(std::string where, std::string what) final;
  /// Not a problem: the result lists it for the caller, once for each name.
  void leave_unchecked(std::string name, std::string why);
  void progress(std::int64_t done, std::int64_t total) final;

  /// A reader with empty caches, so that kinds and names come from the database.
  virtual std::unique_ptr<database::EventReader> make_reader() = 0;

  const Engine& engine() const noexcept { return engine_; }
  const VerifyOptions& options() const noexcept { return options_; }
  VerifyResult& result() noexcept { return result_; }

 private:
  struct EndOfCheck {};

  /// StoreFailed if the database is no longer that of the store.
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
