// Processes that run programs together, replicas by partitions, and their communication. They take
// turns (turns.h), so no locks are needed here.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "interp/turns.h"
#include "interp/value.h"
#include "ir/ir.h"

namespace kiln::interp {

// The simultaneous processes of one evaluation, with those of nested grids.
inline constexpr int64_t kMostProcesses = 256;

class Grid;

// The process that runs a program: a process of a grid, or the only one.
struct Process {
  Grid* grid = nullptr;
  int64_t number = 0;  // its place in the grid: process after process of a replica

  int64_t replicas() const;
  int64_t partitions() const;
  int64_t replica() const { return number / partitions(); }
  int64_t partition() const { return number % partitions(); }
  int64_t At(int64_t replica, int64_t partition) const {
    return replica * partitions() + partition;
  }
  // "process (1, 0)": the replica and the partition.
  std::string Name() const;
};

// A message, and its receiver.
struct Message {
  int64_t channel = 0, from = 0;
  std::optional<int64_t> to;  // nothing: whoever asks
  Shape shape;
  Value value;
};

// A request, and the received value.
struct Request {
  int64_t channel = 0, to = 0;
  std::optional<int64_t> from;  // nothing: whoever sends
  bool is_filled = false;
  Shape shape;
  Value value;
};

class Grid {
 public:
  // The computations make the queue of infeeds.
  Grid(int64_t replicas, int64_t partitions, std::span<const ir::Computation* const> infeed)
      : replicas_(replicas),
        partitions_(partitions),
        infeed_(infeed.begin(), infeed.end()),
        turns_(replicas * partitions) {}

  int64_t replicas() const { return replicas_; }
  int64_t partitions() const { return partitions_; }
  Turns& turns() { return turns_; }

  // Runs a program in each process. The first failure ends them all. Deadlocks and unreceived
  // messages are failures, too.
  Status Run(const std::function<Status(const Process& process)>& program);

  // The values of all members, in the members' order.
  using Brought = std::vector<std::vector<Value>>;
  // Contributes values to a rendezvous of these processes, the caller among them. It completes when
  // all members have arrived with an op of this kind, for the same members and channel. Arrays must
  // agree in shape.
  Result<std::shared_ptr<const Brought>> Meet(const Process& process, const ir::Instruction& op,
                                              const std::vector<int64_t>& members,
                                              std::vector<Value> values);

  // Sending waits only if too many messages are unreceived.
  Status Send(const Process& process, const ir::Instruction& op, Message message);
  // Requests a message: a number for Receive, which waits for it.
  Result<uint32_t> Ask(const ir::Instruction& op, Request request);
  Result<Request> Receive(const Process& process, const ir::Instruction& op, uint32_t request);

  // The next one of the queue, or null.
  const ir::Computation* NextOfInfeed();

 private:
  // The members of a rendezvous, and its key.
  struct Occasion {
    Opcode opcode;
    int64_t channel;
    std::vector<int64_t> members;
    auto operator<=>(const Occasion&) const = default;
  };
  struct Meeting {
    Brought brought;
    int64_t first = 0;  // who came first, whose shapes are the others'
    std::vector<bool> here;
    int64_t missing = 0;
  };

  std::string NameOf(int64_t process) { return Process{this, process}.Name(); }
  void Deliver();

  const int64_t replicas_, partitions_;
  std::deque<const ir::Computation*> infeed_;
  std::map<Occasion, std::shared_ptr<Meeting>> open_;  // in which members are missing
  std::deque<Message> messages_;                       // that nobody has taken
  std::deque<uint32_t> asking_;                        // requests that are not filled
  std::map<uint32_t, Request> requests_;
  uint32_t next_request_ = 1;
  Turns turns_;
};

}  // namespace kiln::interp
