// A program of somebody's with the tool built in, which knows their types.
#include "support/orders.hpp"

#include <stela/projections.hpp>
#include <stela/tool.hpp>

#include <cstdlib>

namespace {

using stela::test::OrderPlaced;

class Customers {
 public:
  static constexpr stela::ProjectorType projector_type{"customers", 1};
  using Events = stela::EventSet<OrderPlaced>;

  void create(stela::ReadModel& model) {
    model.execute("CREATE TABLE {customers} (name TEXT NOT NULL)");
  }
  void project(stela::ReadModel& model, const stela::Recorded<OrderPlaced>& placed) {
    model.execute("INSERT INTO {customers} VALUES (?1)", placed->customer);
  }
};

/// How many orders there are, in the transaction that appends them.
class Tally {
 public:
  static constexpr stela::ProjectorType projector_type{"tally", 1};
  using Events = stela::EventSet<OrderPlaced>;

  void create(stela::ReadModel& model) { model.execute("CREATE TABLE {tally} (cents INTEGER)"); }
  void project(stela::ReadModel& model, const stela::Recorded<OrderPlaced>& placed) {
    model.execute("INSERT INTO {tally} VALUES (?1)", placed->total_cents);
  }
};

/// Its state can be shown.
struct BillState {
  std::int64_t total_cents = 0;
  void apply(const OrderPlaced& placed) { total_cents += placed.total_cents; }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(total_cents));
  }
};

class Bill : public stela::AggregateRoot<BillState, stela::EventSet<OrderPlaced>> {
 public:
  static constexpr std::string_view category = "bill";
  using AggregateRoot::AggregateRoot;
};

}  // namespace

int main(int argc, char** argv) {
  stela::tool::App app;
  app.name = "shop";
  app.version = "3.1";
  app.aggregate<Bill>().aggregate<stela::test::Order>();
  app.projections = [](stela::Projections& projections) {
    projections.add(Customers{});
    if (std::getenv("SHOP_TALLY") != nullptr) projections.add_inline(Tally{});
  };
  return stela::tool::run(argc, argv, app);
}
