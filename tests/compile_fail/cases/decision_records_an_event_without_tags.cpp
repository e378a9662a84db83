// stela: a decision records an event to the stream of its first tag; give the event `static
#include "../domain.hpp"

void record(stela::Decision& decision) {
  decision.record(Shipped{});
}
