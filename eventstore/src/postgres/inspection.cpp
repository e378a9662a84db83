#include "postgres/inspection.hpp"

#include "links.hpp"

#include <stela/framework/error.hpp>

#include <array>
#include <utility>

namespace stela::postgres {
namespace {

constexpr std::string_view damage_advice =
    "keep a copy of the cluster, look into the server's log, and restore a backup";

class FunctionCheck final : public IntegrityCheck {
 public:
  using Function = void (*)(ServerInspection&);
  FunctionCheck(std::string_view name, Function function) noexcept
      : name_{name}, function_{function} {}

  std::string_view name() const noexcept override { return name_; }
  void run(database::Inspection& inspection) override {
    function_(static_cast<ServerInspection&>(inspection));
  }

 private:
  std::string_view name_;
  Function function_;
};

}  // namespace

ServerInspection::ServerInspection(Core& core, FunctionRef<void(const Problem&)> report,
                                   const VerifyOptions& options)
    : core_{core}, report_{report}, options_{options} {}

void ServerInspection::run(IntegrityCheck& check) {
  check_ = check.name();
  problems_of_check_ = 0;
  try {
    check.run(*this);
  } catch (const EndOfCheck&) {
    result_.finished = false;
  }
  hand_out();
}

void ServerInspection::hand_out() {
  for (const Problem& problem : std::exchange(found_, {})) report_(problem);
}

std::optional<std::string> ServerInspection::try_read(FunctionRef<void(Connection&)> work) {
  if (options_.stop.stop_requested()) throw EndOfCheck{};
  try {
    database().read([&](database::Connection& connection) { work(connection_of(connection)); });
  } catch (const Error& e) {
    // What the server has no room for says nothing about the store.
    if (e.is_retryable() || e.code() == ErrorCode::store_full) throw;
    return e.what();
  }
  hand_out();
  return std::nullopt;
}

bool ServerInspection::read(FunctionRef<void(Connection&)> work) {
  auto error = try_read(work);
  if (error) report("the server", std::move(*error));
  return !error;
}

bool ServerInspection::read(database::Database::Work work) {
  return read([&](Connection& connection) { work(connection); });
}

void ServerInspection::report(std::string where, std::string what, std::string advice) {
  found_.push_back({check_, std::move(where), std::move(what), std::move(advice)});
  ++result_.problems;
  if (++problems_of_check_ >= options_.max_problems) throw EndOfCheck{};
}

void ServerInspection::report(std::string where, std::string what) {
  report(std::move(where), std::move(what), std::string{damage_advice});
}

void ServerInspection::leave_unchecked(std::string what, std::string why) {
  result_.unchecked.push_back({std::move(what), std::move(why)});
}

void ServerInspection::progress(std::int64_t done, std::int64_t total) {
  if (options_.progress) options_.progress({check_, done, total});
}

VerifyResult Core::verify(FunctionRef<void(const Problem&)> report, const VerifyOptions& options) {
  ServerInspection inspection{*this, report, options};
  std::array own{FunctionCheck{"schema", &check_own_schema},
                 FunctionCheck{"indexes", &check_indexes},
                 FunctionCheck{"streams", &check_streams},
                 FunctionCheck{"event_kinds", &check_kinds},
                 FunctionCheck{"events", &check_events},
                 FunctionCheck{"tags", &check_tags},
                 FunctionCheck{"append_ids", &check_append_ids},
                 FunctionCheck{"append_groups", &check_append_groups},
                 FunctionCheck{"snapshots", &check_snapshots}};
  for (FunctionCheck& check : own) inspection.run(check);
  links::Check links;
  inspection.run(links);
  for (IntegrityCheck* const check : options.checks) inspection.run(*check);
  return inspection.result();
}

}  // namespace stela::postgres
