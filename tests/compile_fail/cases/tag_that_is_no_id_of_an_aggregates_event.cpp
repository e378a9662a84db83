// stela: a tag is an Id, an optional one, or a list of them; give another value a name
// only that
#include "../domain.hpp"

struct Noted {
  static constexpr stela::EventType event_type{"room.noted"};
  std::string text;
  static constexpr auto tags = stela::tags(&Noted::text);
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(text));
  }
};
struct Remarks {
  void apply(const Noted&) {}
};
struct Notebook : stela::AggregateRoot<Remarks, stela::EventSet<Noted>> {
  static constexpr std::string_view category = "notebook";
  using AggregateRoot::AggregateRoot;
  void note() { record(Noted{"x"}); }
};
void save(stela::EventLog& log) {
  Notebook notebook{stela::Id<Notebook>::from("1")};
  notebook.note();
  stela::Repository<Notebook>{log}.save(notebook);
}
