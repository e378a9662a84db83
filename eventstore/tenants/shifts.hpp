// Work for many tenants by few threads: each tenant gets a thread while it has something to do.
#pragma once

#include <stela/eventstore/tenants.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace stela::tenants {

/// What a look at a tenant showed.
struct Look {
  bool has_work = false;
  /// In what time there will be work even if nothing is written: a timer, for example.
  std::optional<std::chrono::microseconds> next = {};
  /// What stands still and waits for an operator; empty: nothing.
  std::string trouble = {};

  void look_again_in(std::chrono::microseconds pause) {
    next = std::min(next.value_or(pause), std::max(pause, std::chrono::microseconds{0}));
  }
  void note_trouble(const std::string& text) { trouble += (trouble.empty() ? "" : "; ") + text; }
};

/// How often an idle relay or runner looks, so that its turn ends soon.
inline constexpr std::chrono::milliseconds short_idle{100};
/// How soon to look again at a tenant that another process works for.
inline constexpr std::chrono::milliseconds look_elsewhere{1'000};

/// Work on one tenant at a time, by several threads.
class Work {
 public:
  virtual ~Work() = default;
  virtual bool serves(TenantState state) const noexcept = 0;
  virtual Look look(TenantStore& tenant) = 0;
  /// Works until `stop` is requested or `is_over` says that the turn has ended. Returns what keeps
  /// it from working, such as a broker that is down; empty if nothing does.
  virtual std::string serve(TenantStore& tenant, std::stop_token stop,
                            const std::function<bool(bool is_idle)>& is_over) = 0;
};

/// Decides whose turn it is. A tenant is looked at once at the start, and whenever its store was
/// written to. While others wait, a turn lasts a second at most. A failure waits with a growing
/// pause, and concerns its tenant alone. Threads: `run` one at a time; the rest any.
class STELA_EVENTSTORE_EXPORT Shifts {
 public:
  /// Both must outlive it. `threads` 0: 16, or a quarter of the stores that may be open. UsageError
  /// if they leave too few of these to callers.
  Shifts(Tenants& tenants, Work& work, int threads);
  ~Shifts();
  Shifts(const Shifts&) = delete;
  Shifts& operator=(const Shifts&) = delete;

  void run(std::stop_token stop);
  /// Returns once nobody has work that could be done now.
  void run_once();
  TenantsStanding standing() const;

 private:
  class Plan;
  std::shared_ptr<Plan> plan_;
};

}  // namespace stela::tenants
