package atalanta.bench;

import java.io.File;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.store.kahadb.KahaDBPersistenceAdapter;

/**
 * A broker of ActiveMQ Classic as the activemq.xml of its distribution has it: KahaDB with its defaults, and 70 % of
 * the heap for messages.
 *
 * <p>Arguments: port, folder.
 */
public final class ClassicBroker {
    private static final int HEAP_PERCENT = 70;

    private ClassicBroker() {
    }

    public static void main(String[] arguments) throws Exception {
        BrokerService service = new BrokerService();
        service.setBrokerName("localhost");
        service.setDataDirectoryFile(new File(arguments[1]));
        service.getManagementContext().setCreateConnector(false);
        KahaDBPersistenceAdapter store = new KahaDBPersistenceAdapter();
        store.setDirectory(new File(arguments[1], "kahadb"));
        service.setPersistenceAdapter(store);
        service.getSystemUsage().getMemoryUsage().setPercentOfJvmHeap(HEAP_PERCENT);
        service.addConnector("tcp://127.0.0.1:" + arguments[0]
                + "?maximumConnections=1000&wireFormat.maxFrameSize=104857600");
        service.start();
        service.waitUntilStarted();
        System.out.println("ready");
        service.waitUntilStopped();
    }
}
