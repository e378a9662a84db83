// stela_make_old_databases FOLDER: makes the databases that make.sh keeps. The folder is empty.
#include "old_databases/scene.hpp"

#include <exception>
#include <iostream>

namespace stela::test::old {

void make_history(EventStore& store) {
  for (const char* const key : {"old1", "old2"}) {
    EnteredOrder order{Id<EnteredOrder>::from(key)};
    order.enter("zoë", 250);
    Repository<EnteredOrder>{store}.save(order);
  }
  const ContextScope scope{{.correlation_id = "checkout-7", .headers = {{"tenant", "50 %"}}}};
  place(store, "new1");
  note(store, "new1");
  ship(store, "old1");
  Stock stock{Id<Stock>::from("shelf")};
  for (const std::int64_t by : {100, -3, -4, -5, -6}) {
    stock.move(by);
    Repository<Stock>{store}.save(stock);
  }
  Order order{Id<Order>::from("once")};
  order.place("jane", 1);
  Repository<Order>{store}.save(order, {.append_id = "request-17"});
}

void make_plain(const std::filesystem::path& out) {
  Scene scene{out, "plain"};
  {
    auto store = sqlite::open(scene.database(),
                              scene.options(Codec::portable_binary, sqlite::Durability::full));
    make_history(store);
  }
  scene.freeze();
}

}  // namespace stela::test::old

int main(int argc, char** argv) {
  namespace old = stela::test::old;
  if (argc != 2) {
    std::cerr << "usage: stela_make_old_databases FOLDER\n";
    return 2;
  }
  try {
    const std::filesystem::path out{argv[1]};
    old::make_plain(out);
    old::make_leased(out);
    old::make_claimed(out);
    old::make_halted(out);
    old::make_projected(out);
    old::make_consumer(out);
  } catch (const std::exception& e) {
    std::cerr << "stela_make_old_databases: " << e.what() << '\n';
    return 1;
  }
}
