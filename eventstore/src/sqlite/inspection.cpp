#include "sqlite/inspection.hpp"

#include "database/sqlite/failure.hpp"
#include "links.hpp"
#include "sqlite_sql.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace stela::sqlite {
namespace {

class FunctionCheck final : public IntegrityCheck {
 public:
  using Function = void (*)(FileInspection&);
  FunctionCheck(std::string_view name, Function function) noexcept
      : name_{name}, function_{function} {}

  std::string_view name() const noexcept override { return name_; }
  void run(database::Inspection& inspection) override {
    function_(static_cast<FileInspection&>(inspection));
  }

 private:
  std::string_view name_;
  Function function_;
};

void check_own_schema(FileInspection& inspection) {
  check_header(inspection);
  inspection.check_schema("eventstore", sql::migrations, {});
  check_facts(inspection);
}

}  // namespace

FileInspection::FileInspection(Store& store, FunctionRef<void(const Problem&)> report,
                               const VerifyOptions& options)
    : store_{store}, report_{report}, options_{options} {
  if (!sqlite::path(store).empty()) {
    connection_ = core_of(store).connect();
    // Finds damaged pages where they are met, before anything is made of them.
    connection_->execute("PRAGMA cell_size_check = ON");
  }
}

void FileInspection::run(IntegrityCheck& check) {
  check_ = check.name();
  problems_of_check_ = 0;
  try {
    check.run(*this);
  } catch (const EndOfCheck&) {
    result_.finished = false;
  }
  hand_out();
}

void FileInspection::hand_out() {
  for (const Problem& problem : std::exchange(found_, {})) report_(problem);
}

void FileInspection::read_now(Connection& connection, FunctionRef<void(Connection&)> work) {
  if (connection.in_transaction()) return work(connection);
  connection.execute("BEGIN");
  try {
    work(connection);
    connection.execute("COMMIT");
  } catch (...) {
    connection.roll_back();
    throw;
  }
}

std::optional<std::string> FileInspection::try_read(FunctionRef<void(Connection&)> work) {
  if (options_.stop.stop_requested()) throw EndOfCheck{};
  core_of(store_).check_place();
  try {
    if (connection_) {
      read_now(*connection_, work);
      connection_->check_immutable();
    } else {
      core_of(store_).reading().read([&](Connection& connection) { read_now(connection, work); });
    }
  } catch (const Error& e) {
    if (e.is_retryable()) throw;
    return e.what();
  }
  hand_out();
  return std::nullopt;
}

bool FileInspection::read(FunctionRef<void(Connection&)> work) {
  auto error = try_read(work);
  if (error) report("the file", std::move(*error));
  return !error;
}

bool FileInspection::read(database::Database::Work work) {
  return read([&](Connection& connection) { work(connection); });
}

void FileInspection::report(std::string where, std::string what, std::string advice) {
  what.resize(without_advice(what).size());
  found_.push_back({check_, std::move(where), std::move(what), std::move(advice)});
  ++result_.problems;
  if (++problems_of_check_ >= options_.max_problems) throw EndOfCheck{};
}

void FileInspection::report(std::string where, std::string what) {
  sqlite3* const database = connection_ ? connection_->handle() : nullptr;
  report(std::move(where), std::move(what), std::string{advice_on_damage(database)});
}

void FileInspection::leave_unchecked(std::string table, std::string why) {
  std::vector<UncheckedTable>& all = result_.unchecked;
  const auto is_same = [&](const UncheckedTable& other) { return other.table == table; };
  if (std::any_of(all.begin(), all.end(), is_same)) return;
  all.push_back({std::move(table), std::move(why)});
}

void FileInspection::progress(std::int64_t done, std::int64_t total) {
  if (options_.progress) options_.progress({check_, done, total});
}

VerifyResult Core::verify(FunctionRef<void(const Problem&)> report, const VerifyOptions& options) {
  FileInspection inspection{anchor(), report, options};
  std::array own{FunctionCheck{"file", &check_file},
                 FunctionCheck{"schema", &check_own_schema},
                 FunctionCheck{"streams", &check_streams},
                 FunctionCheck{"event_kinds", &check_kinds},
                 FunctionCheck{"events", &check_events},
                 FunctionCheck{"tags", &check_tags},
                 FunctionCheck{"append_ids", &check_append_ids},
                 FunctionCheck{"snapshots", &check_snapshots}};
  for (FunctionCheck& check : own) inspection.run(check);
  links::Check links;
  inspection.run(links);
  for (IntegrityCheck* const check : options.checks) inspection.run(*check);
  return inspection.result();
}

}  // namespace stela::sqlite
