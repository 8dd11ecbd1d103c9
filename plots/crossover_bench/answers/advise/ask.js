// SPDX-License-Identifier: Apache-2.0
// "Ask the page": what `crossover advise` says, from the data embedded in the page. A test in a
// browser holds both equal. Each part names the Python that it repeats, where the reasons are.
const askForm = document.querySelector("#ask form");
if (askForm) {
  const known = JSON.parse(document.querySelector("#ask-data").textContent);
  for (const card of known.cards) {
    for (const precision in card.flops) card.flops[precision] *= 1e12;
    card.memory *= 1e12;
    card.link *= 1e12;
  }
  const sum = numbers => numbers.reduce((total, number) => total + number, 0);
  const range = count => [...Array(count).keys()];

  // --- the network: counts/mlp.py

  const layersOf = widths => widths.slice(1).map((b, layer) => [widths[layer], b]);
  const params = widths => sum(layersOf(widths).map(([a, b]) => (a + 1) * b));
  const disc = (layers, factor) =>
    [2, ...range(layers - 1).map(i => Math.floor(factor * 2 ** (i + 2) + 0.5)), 2];

  function ofSize(wanted) {
    const ladder = range(11).map(i => disc(i + 2, 1));
    const fitting = ladder.filter(widths => params(widths) <= wanted);
    const layers = (fitting.length ? fitting[fitting.length - 1] : ladder[0]).length - 1;
    const away = widths => Math.abs(params(widths) - wanted);
    const sizes = range(193).map(i => disc(layers, (64 + i) / 64));
    return sizes.reduce((best, widths) => away(widths) < away(best) ? widths : best);
  }

  const isHalf = precision => precision === "bf16" || precision === "f16";

  const isClasses = loss => loss === "cross_entropy";
  const wantedOf = ({widths, loss}) => isClasses(loss) ? 1 : widths[widths.length - 1];
  const isTimed = optimizer => known.timed.includes(optimizer);

  function operations({widths, activation, optimizer, loss}, batch, precision) {
    const half = isHalf(precision), small = half ? 2 : 4, layers = layersOf(widths), made = [];
    const add = (flops, bytes, ...products) => made.push({flops, bytes, products});
    const [forward, derivative] = known.activations[activation];
    layers.forEach(([a, b], layer) => {
      const last = layer === layers.length - 1;
      const x = batch * a, w = a * b, y = batch * b, product = 2 * batch * a * b;
      if (half) add(0, 6 * w);
      if (half && !last) add(0, 6 * b);
      add(product + y, small * (x + w) + (last ? 4 : small) * (b + y), [batch, b, a]);
      if (!last) add(forward * y, 2 * small * y);
      const read = small * (x + w + y) + 4 * (w + b);
      if (layer) {
        add(2 * product + y, read + small * x, [batch, a, b], [b, a, batch]);
        add(derivative * x, 3 * small * x);
      } else {
        add(product + y, read, [b, a, batch]);
      }
    });
    if (half) add(0, 6 * batch * widths[0]);
    const logits = batch * widths[widths.length - 1], wanted = 4 * wantedOf({widths, loss}) * batch;
    made.reduced = (4 + small) * logits + wanted + 4;
    add(isClasses(loss) ? 5 * logits + 2 * batch : known.losses[loss] * logits, (4 + small) * logits + wanted + 4);
    const [flops, arrays] = known.optimizers[optimizer];
    add(flops * params(widths), 4 * arrays * params(widths) + (isTimed(optimizer) ? 8 : 0));
    return made;
  }

  function lossLaunches(batch, classes, loss) {
    if (!isClasses(loss)) return batch * classes <= 1024 ? 1 : 2;
    const wanted = Math.min(Math.floor(classes / 4), Math.floor(128 * 2048 / batch), 1024);
    const wide = wanted < 128 ? 32 : 2 ** Math.floor(Math.log2(wanted));
    const threads = classes > 16 ? wide : 1;
    return threads <= 32 && batch * threads <= 1024 ? 1 : 2;
  }

  function gpuLaunches({widths, activation, optimizer, loss}, batch, precision) {
    const half = isHalf(precision), layers = layersOf(widths), relu = activation === "relu";
    const inPlace = layers.map(([a, b]) => optimizer === "sgd" && !half && a * b >= 2 ** 20);
    const isLine = layers.map(([a, b]) => Math.min(batch, a, b) === 1);
    const masks = layers.map((_, layer) => relu && layer > 0 && !isLine[layer]);
    let count = layers.length + (relu ? 0 : layers.length - 1) + half;
    count += lossLaunches(batch, widths[widths.length - 1], loss);
    layers.forEach(([, b], layer) => {
      if (layer) count += masks[layer] ? 1 : 2;
      const summedAbove = masks[layer + 1] && !half;
      const parts = Math.min(Math.floor(512 / Math.ceil(b / 32)), Math.floor(batch / 256));
      const isSummedAlone = inPlace[layer] || (!summedAbove && isLine[layer]);
      count += isSummedAlone ? (batch >= 2048 && parts >= 2 ? 3 : 2) : 1;
    });
    const alike = layers.flatMap((_, layer) => [false, true].map(isBias => inPlace[layer] ? "" :
      `${optimizer === "adamw" && isBias} ${half && !(isBias && layer === layers.length - 1)}`));
    const spans = alike.filter((key, i) => key && key !== alike[i - 1]).length;
    return count + isTimed(optimizer) + Math.ceil(spans / 32);
  }

  function workOf(network, precision) {
    const {widths, batch, rows} = network;
    const full = Math.floor(rows / batch), rest = rows % batch;
    const runs = rest ? [[batch, full], [rest, 1]] : [[batch, full]];
    const steps = full + (rest ? 1 : 0);
    const total = count => sum(runs.map(([size, times]) => times * count(size)));
    const of = field =>
      total(size => sum(operations(network, size, precision).map(operation => operation[field])));
    return {
      params: params(widths), batch, rows, steps, logits: rows * widths[widths.length - 1],
      flops: of("flops"), bytes: of("bytes"),
      products: (3 * (widths.length - 1) - 1) * steps,
      toDevice: 4 * (widths[0] + wantedOf(network)) * rows,
      launches: total(size => gpuLaunches(network, size, precision)),
      first: operations(network, batch, precision),
    };
  }

  /// Launches of an epoch in a way of the GPU; rows not read in place take one a step, or two copies.
  function launchesIn(work, {execution, data}) {
    const gathers = execution === "graph" || (execution === "graph-epoch" && work.rows >= 2 * work.batch);
    return work.launches + work.steps * (data !== "resident" ? 2 : gathers ? 1 : 0);
  }

  // --- this machine: answers/advise/analysis.py

  function ofSeries(series, work) {
    const copied = series.data !== "resident" ? work.toDevice : 0;
    if (copied && series.weights.length < 5) return "the file has no Peak row for copies to the GPU";
    const calls = series.device === "cpu" ? work.products : launchesIn(work, series);
    const [flops, memory, copy] = series.ceilings, floor = work.flops / flops;
    const sizes = [work.params, work.batch, work.flops / work.steps, calls / work.steps];
    const beyond = Math.max(1, ...sizes.map(
      (size, i) => Math.max(size / series.ranges[i][1], series.ranges[i][0] / size)));
    if (beyond > known.farthest) return "the network is too far from those that were measured";
    const features = [calls, work.logits, floor, work.bytes / memory, copied / (copy || Infinity)]
      .slice(0, series.weights.length);
    const seconds = Math.max(sum(features.map((feature, i) => feature * series.weights[i])), floor);
    const shares = features.map(feature => feature / seconds);
    const leverage = sum(series.leverage.map(
      (row, i) => shares[i] * sum(row.map((moment, j) => moment * shares[j]))));
    const width = Math.exp(series.band *
      Math.max(Math.sqrt(1 + leverage), 1 + Math.log(beyond) / Math.log(known.farthest)));
    return {...series, seconds, low: Math.max(seconds / width, floor), high: seconds * width, beyond};
  }

  // --- cards: answers/predict/model.py, ways.py, simulate.py

  /// The share of a card that a product can use: busy().
  function busy(m, n, k, multiprocessors) {
    let best = 0;
    for (const a of [32, 64, 128]) for (const b of [32, 64, 128]) {
      const rows = Math.ceil(m / a), columns = Math.ceil(n / b);
      const filled = (m * n) / (rows * a * columns * b), intensity = a * b / (a + b);
      for (let split = 1; split <= 1024; split *= 2) {
        if (split > 1 && k < split * 64) break;
        const tiles = rows * columns * split;
        const turns = multiprocessors ? Math.ceil(tiles / multiprocessors) : 0;
        const idle = turns ? tiles / (turns * multiprocessors) : 1;
        best = Math.max(best, filled * idle * intensity / (intensity + 16));
      }
    }
    return best;
  }

  /// Each kind of launch of a step: how many, what it works in seconds, and its inner dimension.
  /// `passes` of an optimizer's update, whose bytes ours moves once.
  function demand(work, card, precision, launches, passes = 1) {
    const [product, , memory, narrow, matrix, , , , reduction, power, rate] = known.parameters;
    const units = precision === "f32" ? 0 : matrix + rate * Math.log(card.flops[precision] / card.flops.f32);
    const kinds = [], reduced = work.first.reduced;
    let others = launches, bytes = (passes - 1) * work.first[work.first.length - 1].bytes - reduced;
    for (const operation of work.first) {
      if (!operation.products.length) bytes += operation.bytes;
      for (const [m, n, k] of operation.products) {
        const share = busy(m, n, k, card.multiprocessors);
        const efficiency = product + units + power * Math.log(Math.min(card.power / share / 20, 1)) +
          narrow * Math.log(Math.max(Math.min(m, n, k, 512), 32) / 128);
        const compute = 2 * m * n * k / card.flops[precision] / share;
        const moved = operation.bytes / operation.products.length / card.memory * Math.exp(-memory);
        kinds.push({count: 1, arithmetic: compute * Math.exp(-efficiency), traffic: moved, inner: m > 1 ? Math.min(k, 256) : 0});
        others -= 1;
      }
    }
    const count = Math.max(others, 1);
    const moved = (bytes * Math.exp(-memory) + reduced * Math.exp(-reduction)) / card.memory;
    return [...kinds, {count, arithmetic: 0, traffic: moved / count, inner: 0}];
  }

  /// Student's t for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
  function below(t, freedom) {
    const angle = Math.atan(t / Math.sqrt(freedom)), odd = freedom % 2;
    let term = odd ? Math.cos(angle) : 1, total = freedom > 1 ? term : 0;
    for (let k = odd ? 3 : 2; k <= freedom - 2; k += 2) {
      term *= (k - 1) / k * Math.cos(angle) ** 2;
      total += term;
    }
    const inside = Math.sin(angle) * total;
    return (1 + (odd ? 2 / Math.PI * (angle + inside) : inside)) / 2;
  }

  const remembered = new Map();
  const once = (key, make) => remembered.get(key) ?? remembered.set(key, make()).get(key);
  const places = name => once(name, () => {
    let step = 1;
    for (const _ of range(known.dimensions.indexOf(name))) step = step * known.generator % known.draws;
    return range(known.draws).map(i => i * step % known.draws);
  });
  const uniform = name => places(name).map(place => (place + 0.5) / known.draws);
  const tails = (name, freedom) => once(`${name} ${freedom}`, () => {
    const sorted = range(known.draws).map(place => {
      let low = -1e4, high = 1e4;
      for (let turn = 0; turn < 80; ++turn) {
        const middle = (low + high) / 2;
        if (below(middle, freedom) < (place + 0.5) / known.draws) low = middle; else high = middle;
      }
      return (low + high) / 2;
    });
    return places(name).map(place => sorted[place]);
  });
  const within = ([low, high], name) =>
    uniform(name).map(share => low ? low * (high / low) ** share : high * share);
  const around = ({middle = 1, spread, count}, name) =>
    tails(name, count - 1).map(tail => middle * Math.exp(spread * tail));
  const middleOf = ([low, high]) => low ? Math.sqrt(low * high) : high / 2;

  function quantile(sorted, share) {
    const place = share * (sorted.length - 1), left = Math.floor(place);
    return sorted[left] + (place - left) * ((sorted[left + 1] ?? sorted[left]) - sorted[left]);
  }

  /// Of a graph of the epoch's time what one kernel for the epoch takes: ways.py.
  function persistentShare(params, precision) {
    const shares = known.persistent, after = shares.findIndex(([size]) => size > params);
    if (precision !== "f32" || after < 0) return 1;
    if (after === 0) return shares[0][1];
    const [[size, share], [next, last]] = shares.slice(after - 1, after + 1);
    return share + (last - share) * Math.log(params / size) / Math.log(next / size);
  }

  function ofCard(card, way, work, precision) {
    if (!card.flops[precision]) return `no source gives the ${precision} rate of ${card.name}`;
    const {wait, graph_launch: graph, small_copy: copied, launch} = known.overheads;
    const copies = way.data === "resident" ? 0 : 2, {steps} = work;
    if (copies && !card.link) return `no source gives the link of ${card.name}`;
    const isAuto = way.execution === "auto", counted = isAuto ? {...way, execution: "graph-epoch"} : way;
    const kinds = demand(work, card, precision, launchesIn(work, counted) / steps - copies);
    const beside = [wait];
    if (way.execution !== "eager") beside.push(graph.map(end => end * (isAuto ? 1 : steps)));
    if (copies) {
      const transfer = work.toDevice / steps / card.link;
      beside.push([0, (copied[1] * copies + 2 * transfer) * steps]);
    }
    const started = way.execution === "eager" ? launch : [0, 0], {inner, factor} = known;
    const label = `${card.name}, ${way.execution}, ${way.data}`;
    const named = {label, device: card.id, name: card.name, data: way.data};
    if (factor) {
      const ours = known.launches.expected;
      const floor = kind =>
        Math.max(middleOf(card.node) + inner.middle * kind.inner, middleOf(started)) * ours;
      const graphs = steps * sum(kinds.map(kind => kind.count * Math.max(floor(kind), kind.arithmetic + kind.traffic))) +
        ours * sum(beside.map(middleOf));
      const seconds = isAuto ? graphs * Math.min(persistentShare(work.params, precision), 1) : graphs;
      return {...named, seconds, low: seconds / factor, high: seconds * factor};
    }
    const {spread} = known.launches, ours = within([Math.exp(-spread), Math.exp(spread)], "ours")
      .map(factor => factor * known.launches.expected);
    const step = deviceSeconds(kinds, card, precision, within(started, "launch"), ours);
    const hosts = beside.map((band, place) => within(band, `host ${place}`));
    const totals = range(known.draws).map(i => sum(hosts.map(host => host[i])) + steps * step[i]);
    if (isAuto) {
      const share = persistentShare(work.params, precision);
      const band = within(card.persistent, "persistent");
      if (share < 1) band.forEach((factor, i) => totals[i] *= Math.min(share * factor, 1));
    }
    return {...named, ...ends(totals)};
  }

  /// The band of draws.
  function ends(draws) {
    const sorted = [...draws].sort((a, b) => a - b);
    const [low, seconds, high] = [0.05, 0.5, 0.95].map(share => quantile(sorted, share));
    return {low, seconds, high};
  }

  /// Draws of a step on a card, where a launch takes `ours` times what was published, `start` at least.
  function deviceSeconds(kinds, card, precision, start, ours) {
    const [whole, arithmetic, memory] = ["device", "arithmetic", "memory"]
      .map((name, place) => around(known.errors[place], name));
    const onUnits = known.on_units[precision];
    if (onUnits) around(onUnits, "precision").forEach((factor, i) => whole[i] *= factor);
    if (card.clock) within(card.clock, "clock").forEach((times, i) => arithmetic[i] /= times);
    const step = around(known.inner, "inner"), node = within(card.node, "node");
    return range(known.draws).map(i => sum(kinds.map(kind => kind.count * Math.max(
      ours[i] * (node[i] + step[i] * kind.inner), ours[i] * start[i],
      whole[i] * (arithmetic[i] * kind.arithmetic + memory[i] * kind.traffic)))));
  }

  // --- in PyTorch's loop: answers/advise/pytorch.py, answers/predict/host.py

  function inPytorch({machine, network, card, precision}, ours, works) {
    const {host, draws} = known, {call, card: own} = known.machines[machine].pytorch;
    const gpu = card ?? known.cards.find(({id}) => id === own), work = works(precision), {steps} = work;
    if (!ours || !host.precisions.includes(precision)) return null;
    const layers = network.widths.length - 1, arrays = known.optimizers[network.optimizer][1];
    const count = host.calls * (6 * layers - 1) + 2 * layers * (host.updates[arrays] ?? 1) + host.beside +
      (isTimed(network.optimizer) ? host.adam : 0);
    const calls = around(call, "operation"), error = around(host.error, "theirs");
    const here = within([ours.low / steps, ours.high / steps], "here");
    const cpus = range(draws).map(i => steps * (calls[i] * count + host.work * here[i]) * error[i]);
    const cpu = {name: "predicted", ...ends(cpus)};
    if (!gpu || !gpu.flops[precision]) return {cpu, gpus: []};
    const ones = Array(draws).fill(1), none = Array(draws).fill(0);
    const kinds = demand(work, gpu, precision, 8 * layers - 1, host.passes[arrays]);
    const step = deviceSeconds(kinds, gpu, precision, none, ones);
    const ratio = within(host.ratio, "intercept"), wait = within(known.overheads.wait, "host 0");
    const gpus = range(draws).map(i => steps * Math.max(step[i], count * ratio[i] * calls[i]) + wait[i]);
    const gains = range(draws).map(i => Math.log(cpus[i] / gpus[i])).sort((a, b) => a - b);
    const side = quantile(gains, 0.05) > 0 ? "gpu" : quantile(gains, 0.95) < 0 ? "cpu" : "";
    return {cpu, gpus: [{device: card ? gpu.id : "cuda", name: gpu.name, ...ends(gpus)}], side};
  }

  // --- the advice: advice.py, words.py

  const fastest = ways => {
    const there = ways.filter(way => way.data === "resident");
    return (there.length ? there : ways)
      .reduce((best, way) => !best || way.seconds < best.seconds ? way : best, null);
  };
  const winner = (cpu, gpu) =>
    !cpu || !gpu || (cpu.low <= gpu.high && gpu.low <= cpu.high) ? "" : gpu.high < cpu.low ? "gpu" : "cpu";

  function advise({machine, network, precision, threads, card}) {
    const fitted = known.machines[machine].series[precision] ?? {series: [], cpu: precision};
    const works = once(JSON.stringify(network), () => ({}));
    const work = which => works[which] ??= workOf(network, which);
    const chosen = fitted.series.filter(
      series => series.device !== "cpu" || !threads || series.threads === threads);
    const answers = chosen.map(
      series => ofSeries(series, work(series.device === "cpu" ? fitted.cpu : precision)));
    const ways = known.ways.map(([execution, data]) => ({execution, data}));
    if (card) answers.push(...ways.map(way => ofCard(card, way, work(precision), precision)));
    const predictions = answers.filter(answer => typeof answer !== "string");
    const reasons = [...new Set(answers.filter(answer => typeof answer === "string"))];
    const unlike = Object.entries(known.machines[machine].seen)
      .filter(([what, seen]) => !seen.includes(network[what])).map(([what]) => network[what]);
    if (unlike.length && predictions.some(way => way.weights))
      reasons.push(known.unlike.replace("{}", unlike.map(name => name.replace("_", "-")).join(" or ")));
    if (fitted.cpu !== precision) reasons.unshift(`The CPU trains in ${fitted.cpu}`);
    for (const {label, beyond} of predictions.filter(way => way.beyond > 1))
      reasons.push(`${label}: the network is ${significant(beyond, 2)} times beyond the measured ` +
        "range, so the band is wider");
    const on = device => predictions.filter(way => way.device === device);
    const cpus = on("cpu"), cpu = fastest(cpus);
    const gpus = [card?.id, "cuda"].map(device => fastest(on(device))).filter(Boolean);
    const theirs = inPytorch({machine, network, card, precision}, cpu, work);
    const isWhole = theirs && theirs.gpus.length === Math.min(gpus.length, 1);
    return {cpus, cpu, gpus, reasons, pytorch: isWhole ? theirs : null};
  }

  const span = (way, epochs) => {
    const [low, high] = timeEnds(epochs * way.low, epochs * way.high, 2);
    return seconds(epochs * way.low, 2) === high ? high : `${low} to ${high}`;
  };
  const counted = (count, thing) => `${count.toLocaleString("en-US")} ${thing}${count === 1 ? "" : "s"}`;
  const verdicts = {gpu: "the GPU wins", cpu: "the CPU wins", "": "too close to call"};

  function sentence({cpu, gpus: [gpu], side = winner(cpu, gpu)}, rows, epochs, lead = "", isSecond = false) {
    const article = name => "AEFHILMNORSX".includes(name[0]) ? "an" : "a";
    const sides = [];
    if (cpu) sides.push(`${span(cpu, epochs)} here (${cpu.name})`);
    if (gpu) sides.push(
      `${span(gpu, epochs)} on ${gpu.device === "cuda" ? "its GPU" : `${article(gpu.name)} ${gpu.name}`}`);
    const of = isSecond ? "" : `${counted(epochs, "epoch")} of ${counted(rows, "row")}: `;
    const times = `${lead && `${lead}, `}${of}${sides.join(", ")}`;
    const missing = cpu ? "no GPU to compare with" : "nothing is known of this CPU";
    return cpu && gpu ? `${times}: ${verdicts[side]}.` : `${times}; ${missing}.`;
  }

  /// The one in PyTorch's loop first, where it is known.
  function both(advice, rows, epochs) {
    const {pytorch} = advice, [theirs, ours] = known.leads;
    if (!pytorch) return sentence(advice, rows, epochs, ours);
    return `${sentence(pytorch, rows, epochs, theirs)} ${sentence(advice, rows, epochs, ours, true)}`;
  }

  // --- the form

  const field = name => askForm.elements[name]?.value.trim() ?? "";
  const whole = text => /^[1-9]\d{0,7}$/.test(text.trim()) ? Number(text) : 0;

  function asked() {
    const widths = field("network").split(/[,-]/).map(whole);
    const [batch, rows, epochs] = ["batch", "rows", "epochs"].map(name => whole(field(name)));
    if (!widths.every(Boolean))
      return "Layer widths are whole numbers with commas between them, such as 784,512,10.";
    const [activation, optimizer] = ["activation", "optimizer"].map(field);
    const isNumber = widths.length > 1 && widths[widths.length - 1] === 1;
    const loss = field("loss") || (isNumber ? "mse" : "cross_entropy");
    if (isNumber && isClasses(loss))
      return "Cross-entropy needs two classes or more: one output takes mse or bce.";
    if (!batch || !rows || !epochs) return "Batch, rows and epochs are whole numbers from 1 on.";
    if (batch > rows) return `An epoch has ${counted(rows, "row")}: a batch cannot be larger.`;
    const card = known.cards.find(({id}) => id === field("card"));
    const shape = widths.length > 1 ? widths : ofSize(widths[0]);
    const network = {widths: shape, batch, rows, activation, optimizer, loss};
    return {network, epochs, machine: Number(field("machine")) || 0, card, isSize: widths.length === 1,
            precision: field("precision"), threads: field("threads")};
  }

  const element = (tag, text, name = "") =>
    Object.assign(document.createElement(tag), {textContent: text, className: name});
  const answer = document.querySelector("#ask output");

  function line(way, cpu, epochs) {
    const row = document.createElement("tr");
    row.append(element("td", way.label, "word"));
    for (const value of [way.seconds, way.low, way.high].map(time => epochs * time)) {
      const cell = element("td", seconds(value, 2), "number");
      cell.dataset.value = value;
      row.append(cell);
    }
    const against = {gpu: "faster", cpu: "slower", "": "not sure"}[winner(cpu, way)];
    row.append(element("td", way.device === "cpu" || !cpu ? "–" : against, "word"));
    return row;
  }

  /// What asks the same in a shell: what the form has otherwise than `advise` by itself.
  const shell = document.querySelector("#ask pre code"), [program] = shell.textContent.split(" --mlp ");
  const usual = {batch: "100", epochs: "1", precision: "f32", activation: "relu",
                 optimizer: "sgd", loss: "", threads: "", card: ""};
  const flags = {loss: "loss-function", card: "gpu"};

  function command({network: {widths, batch, rows}, machine, isSize}) {
    const given = Object.keys(usual).filter(name => field(name) !== usual[name]);
    const words = given.map(name => `--${flags[name] ?? name} ${field(name)}`);
    if (rows !== Math.max(batch, 1000)) words.push(`--rows ${rows}`);
    const asks = isSize ? `--params ${field("network")}` : `--mlp ${widths.join(",")}`;
    return [program, asks, ...words, known.machines[machine].path].join(" ");
  }

  function show() {
    const what = asked();
    if (typeof what === "string") return answer.replaceChildren(element("p", what, "note"));
    const {network: {widths, rows, loss}, epochs} = what;
    shell.textContent = command(what);
    const advice = advise(what), lines = [...advice.cpus, ...advice.gpus];
    const reasons = advice.reasons.map(
      reason => element("p", `${reason[0].toUpperCase()}${reason.slice(1)}.`, "note"));
    if (!lines.length) return answer.replaceChildren(...reasons);
    const table = document.createElement("table"), head = table.createTHead().insertRow();
    const titles = ["on", epochs === 1 ? "epoch" : counted(epochs, "epoch"), "from", "to", "than the CPU"];
    titles.forEach((title, i) => head.append(element("th", title, i && i < 4 ? "number" : "")));
    table.createTBody().append(...lines.map(way => line(way, advice.cpu, epochs)));
    const scrolling = element("div", "", "table");
    const trained = isClasses(loss) ? "" : `, ${loss}`;
    const shape = `${widths.join("-")}${trained}, ${counted(params(widths), "parameter")}; predicted, not measured`;
    table.prepend(document.createElement("caption"));
    table.caption.append(element("span", shape));
    scrolling.append(table);
    answer.replaceChildren(element("p", both(advice, rows, epochs), "answer"), scrolling, ...reasons);
  }

  /// What the machine at hand was measured with.
  function offer() {
    const {series} = known.machines[Number(field("machine")) || 0];
    const counts = new Set(Object.values(series).flatMap(fitted => fitted.series.map(({threads}) => threads)));
    const select = askForm.elements.threads;
    select.replaceChildren(new Option("any", ""), ...[...counts].filter(Boolean).map(count => new Option(count, count)));
  }

  askForm.addEventListener("submit", event => event.preventDefault());
  askForm.elements.machine?.addEventListener("change", offer);
  askForm.addEventListener("input", show);
  askForm.hidden = false;
  offer();
  show();
}
