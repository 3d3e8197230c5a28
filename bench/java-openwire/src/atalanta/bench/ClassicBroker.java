package atalanta.bench;

import java.io.File;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.TransportConnector;
import org.apache.activemq.network.NetworkConnector;
import org.apache.activemq.store.kahadb.KahaDBPersistenceAdapter;

/**
 * A broker of ActiveMQ Classic as the activemq.xml of its distribution has it: KahaDB with its defaults, and 70 % of
 * the heap for messages. With peers it is one of a network, and tells and rebalances its clients.
 *
 * <p>Arguments: port, folder, and the ports of the peers.
 */
public final class ClassicBroker {
    private static final int HEAP_PERCENT = 70;

    private ClassicBroker() {
    }

    public static void main(String[] arguments) throws Exception {
        BrokerService service = new BrokerService();
        service.setBrokerName("broker-" + arguments[0]);
        service.setDataDirectoryFile(new File(arguments[1]));
        service.getManagementContext().setCreateConnector(false);
        KahaDBPersistenceAdapter store = new KahaDBPersistenceAdapter();
        store.setDirectory(new File(arguments[1], "kahadb"));
        service.setPersistenceAdapter(store);
        service.getSystemUsage().getMemoryUsage().setPercentOfJvmHeap(HEAP_PERCENT);
        TransportConnector acceptor = service.addConnector("tcp://127.0.0.1:" + arguments[0]
                + "?maximumConnections=1000&wireFormat.maxFrameSize=104857600");
        acceptor.setUpdateClusterClients(arguments.length > 2);
        acceptor.setRebalanceClusterClients(arguments.length > 2);
        acceptor.setUpdateClusterClientsOnRemove(arguments.length > 2);
        for (int at = 2; at < arguments.length; at++) {
            NetworkConnector bridge = service.addNetworkConnector("static:(tcp://127.0.0.1:" + arguments[at] + ")");
            bridge.setName("to-" + arguments[at]);
            bridge.setDuplex(true);
        }
        service.start();
        service.waitUntilStarted();
        System.out.println("ready");
        service.waitUntilStopped();
    }
}
